"""The command line: parse, call the client, render one view as text or JSON.

::

    main ──▶ app.register (shared options, errors) ──▶ commands.<section>.<command>
                                                            │ one Client call each
                                                            ▼
                                                       app.session ──▶ JSON: the view as it is
                                                                   └─▶ text: render.<view> (pure)

stdout is data; narration, progress and questions go to stderr. Nothing here imports Spark, Iceberg or the ledger:
``errata.open`` is called inside the commands that need a project.
"""
