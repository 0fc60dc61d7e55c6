# The course in a container: for Codespaces, a hub, and instructors on macOS and Windows, whose
# students' code then runs in Linux' sandbox. docs/GRADING.md says how.
FROM python:3.12
RUN apt-get update -q && apt-get install -qy --no-install-recommends bubblewrap && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 learner
WORKDIR /srv/transformer-course
COPY . .
# learners cannot keep what Python compiles here
ENV COURSE_CACHE=/srv/transformer-course/.cache/data UV_COMPILE_BYTECODE=1
RUN pip install -q uv && make .venv/.learn
RUN .venv/bin/python install.py -c constraints.txt -e ".[instructor]" jupyterhub
RUN .venv/bin/course fetch && .venv/bin/python -c "from course_lib.pretrained import minilm, smollm2; minilm.load(), smollm2.load()"
USER learner
ENV PATH=/srv/transformer-course/.venv/bin:$PATH COURSE_WORKSPACE=/home/learner/transformer-course
# a hub starts its own Lab: a closed tab ends its kernel there, too
ENV JUPYTER_CONFIG_PATH=/srv/transformer-course/course_lib/command_line/lab
WORKDIR /home/learner
EXPOSE 8888
CMD ["course", "learn", "--no-browser", "--ip=0.0.0.0", "--port=8888"]
