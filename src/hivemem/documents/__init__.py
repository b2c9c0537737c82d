"""Uploaded files: what kind they are, their text, a summary, and the cells of spreadsheets.

`reading.Documents` is the way in: it runs everything that parses foreign bytes in a worker process with
hard limits. `kinds` decides what a file is, `extract` gives its text, `summary` shortens it, `tabular/`
answers questions about sheets. Nothing here knows nodes or graphs.
"""
