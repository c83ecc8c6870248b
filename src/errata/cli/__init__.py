"""The command line: parse, call the client, render one view as text or JSON.

::

    main ──▶ command (shared options, errors) ──▶ setup, planning, working, releasing, reading
                                                     │ one Client call each
                                                     ▼
                                                  session ──▶ JSON: the view, as it is
                                                          └─▶ text: render_* (pure) ──▶ layout

stdout is data; narration, progress and questions go to stderr. Nothing here decides anything about data, and nothing
here imports Spark, Iceberg or the ledger: ``errata.open`` is called inside the commands that need a project.
"""
