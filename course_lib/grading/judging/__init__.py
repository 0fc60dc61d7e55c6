"""From a notebook to verdicts: workers, the sandbox, and the judge outside it."""
