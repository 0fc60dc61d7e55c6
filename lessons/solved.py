"""What a committed notebook shows of its exercises: what one who has solved them sees.

Below a check are its panel for the solution and, folded, a wrong answer with its panel, and the
solution. A workspace's copy has none of it: notebooks are handed out without outputs.
"""

from markupsafe import Markup
from nbformat import NotebookNode
from nbformat.v4 import new_output

from book import exercises
from course_lib.checking.catalogue import load
from course_lib.checking.explain import panel
from course_lib.checking.notebook.solution_text import solution_text
from lessons.kept import CHECK, alike

SHOWN = Markup("""<div>With the solution:</div>{}
<details><summary>A wrong answer, and what <code>check</code> says</summary>
<pre>{}</pre>{}</details>
<details><summary>The solution</summary><pre>{}</pre></details>""")


def show_solved(notebook: NotebookNode) -> None:
    """Let each check say what it says of the solution, which needs no kernel."""
    for cell in notebook.cells:
        if asked := CHECK.match(cell.source):
            data = solved_output(asked[1])
            if not cell.outputs or not alike(cell.outputs[0].data, data):
                cell.outputs = [new_output("display_data", data=data)]


def solved_output(exercise_id: str) -> dict[str, str]:
    """Return what is shown below the check of an exercise."""
    solved, wrong = exercises.solved(exercise_id), exercises.known_mistake(exercise_id)
    panels = [Markup(panel.html(x, in_notebook=False)) for x in (solved, wrong.verdict)]
    written = "\n\n\n".join([*wrong.helpers, wrong.source])
    html = SHOWN.format(panels[0], written, panels[1], solution_text(load(exercise_id)).rstrip())
    first = panel.text(solved).splitlines()[0]
    return {"text/html": str(html), "text/plain": f"With the solution: {first}"}
