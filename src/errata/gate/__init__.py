"""The gate: whether a candidate holds what the product file promises.

::

    candidate           assemble the candidate snapshot, and store its measurements
    rules               check SQL rules before anything runs           (pure)
    measure             what has to be counted, in one scan per table  (pure)
    verdict             judge the numbers                              (pure)
    diff                the candidate against what main held
    warnings            warnings that an approver accepted
    row_accounts        rows read = rows used + rows set aside
    threshold_changes   judge again by other thresholds

Measurements are stored before they are judged, so another threshold never needs another scan.
"""
