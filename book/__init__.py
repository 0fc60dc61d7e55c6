"""The course as a static site, to be read without Jupyter and without a network: `make book`."""
