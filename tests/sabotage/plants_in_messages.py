"""Bugs to plant in what consumers declare and get: templates, messages, channels; see :mod:`sabotage.plants`."""

from __future__ import annotations

from sabotage.plant import Plant

TEXT = "tests/unit/model/consumer/test_partition_text.py::test_"
DECLARED = "tests/unit/project/test_consumers.py::test_"
SENT = "tests/protocol/test_messages.py::test_"
CHANNELS = "tests/unit/engines/test_channels.py::test_"

IN_MESSAGES = (
    # --------------------------------------------------------------------------- a value from data is more than a value
    Plant(
        "a tenant called * clears the whole cache",
        "model/consumer/partition_text.py",
        '    return template.replace(HOLE, _GLOB.sub(r"\\\\\\1", partition))\n',
        "    return template.replace(HOLE, partition)\n",
        (f"{TEXT}a_value_in_a_redis_pattern_matches_only_itself",),
    ),
    Plant(
        "a partition is put into the text of a statement",
        "model/consumer/partition_text.py",
        "    bound, count = _SQL_HOLE.subn(lambda _: placeholder, text)\n",
        "    bound, count = _SQL_HOLE.subn(lambda _: f\"'{partition}'\", text)[0], 0\n",
        (f"{TEXT}a_value_in_sql_matches_only_itself",),
    ),
    Plant(
        "a partition called .. leaves the path of an address",
        "model/consumer/partition_text.py",
        '    if unquote(filled) in ("", ".", ".."):\n',
        "    if False:\n",
        (f"{TEXT}a_value_in_a_url_stays_in_its_place",),
    ),
    Plant(
        "a partition called --all is an option",
        "model/consumer/partition_text.py",
        '        if word == HOLE and partition.startswith("-") and "--" not in template[:n]:\n',
        "        if False:\n",
        (f"{TEXT}a_value_that_looks_like_an_option_needs_the_end_of_options_before_it",),
    ),
    Plant(
        "a partition may be a LIKE pattern",
        "project/build/partition_places.py",
        '        if isinstance(inner.parent, patterns) and inner.arg_key != "this":\n',
        "        if False:\n",
        (f"{DECLARED}a_partition_elsewhere_in_sql_is_refused",),
    ),
    Plant(
        "a hole inside a text counts as one that was bound",
        "project/build/partition_places.py",
        "    if len(values) != len(bound.parameters) or ",
        "    if ",
        (f"{DECLARED}a_partition_elsewhere_in_sql_is_refused",),
    ),
    Plant(
        "a template in a header is not looked at",
        "project/build/partition_places.py",
        '        elif not _PLACES & set(path[2:]) or "headers" in path:\n',
        "        elif not _PLACES & set(path[2:]):\n",
        (f"{DECLARED}a_partition_elsewhere_in_a_consumer_is_refused",),
    ),
    # --------------------------------------------------------------------------------------------- what nobody may read
    Plant(
        "a message has the sum of a classified column",
        "delivery/message_metrics.py",
        '    if find_column(expressions.get(moves.name, ""), classified):\n',
        "    if False:\n",
        (f"{SENT}a_message_names_metrics_over_classified_columns_without_values",),
    ),
    Plant(
        "a column that was classified after planning is shown",
        "delivery/occasions.py",
        "    return tuple(dict.fromkeys((*manifest.classified, *(product.classified if product else ()))))\n",
        "    return manifest.classified\n",
        (f"{SENT}a_message_names_metrics_over_classified_columns_without_values",),
    ),
    Plant(
        "a message repeats a secret that a person pasted",
        "delivery/occasions.py",
        "    return _redact(occasion, workspace.project.redact)\n",
        "    return occasion\n",
        (f"{SENT}a_secret_in_a_reason_is_redacted_in_messages",),
    ),
    Plant(
        "an item keeps a secret that an error quoted",
        "delivery/consumer_messages.py",
        "    carried = _redact_texts(dict(payload or {}), project.redact)\n",
        "    carried = dict(payload or {})\n",
        (f"{SENT}no_secret_reaches_a_message_a_record_or_a_screen",),
    ),
    Plant(
        "a reason mentions everyone on Slack",
        "model/consumer/message_formats.py",
        '.replace("<", "&lt;")',
        "",
        (f"{CHANNELS}slack_gets_blocks_and_text_without_mentions",),
    ),
    Plant(
        "an error quotes what the receiver answered",
        "engines/channels/webhook.py",
        '    why = f" ({word.decode()})" if _REASON.fullmatch(word) else ""\n',
        '    why = f" ({word.decode()})"\n',
        (f"{CHANNELS}a_receiver_that_does_not_take_a_message_is_an_error_in_time",),
    ),
    # ------------------------------------------------------------------------------------------- sent wrongly, or twice
    Plant(
        "the signature does not cover the id",
        "engines/channels/webhook.py",
        '    signed = b".".join((id_.encode(), str(timestamp).encode(), body))\n',
        '    signed = b".".join((b"", str(timestamp).encode(), body))\n',
        (f"{CHANNELS}a_webhook_is_signed_over_id_time_and_body",),
    ),
    Plant(
        "a redirect takes the message to another address",
        "engines/http_request.py",
        "            return None  # the redirect itself is the answer\n",
        "            pass\n",
        (f"{CHANNELS}a_receiver_that_does_not_take_a_message_is_an_error_in_time",),
    ),
    Plant(
        "a receiver that sends a byte now and then holds up the sender",
        "engines/http_request.py",
        "        timer = threading.Timer(seconds, self._close)\n",
        "        timer = threading.Timer(3600, self._close)\n",
        (f"{CHANNELS}a_receiver_that_does_not_take_a_message_is_an_error_in_time",),
    ),
    Plant(
        "an answer that is no success counts as one",
        "engines/channels/webhook.py",
        "    if 200 <= answer.status < 300:\n",
        "    if 200 <= answer.status < 600:\n",
        (f"{CHANNELS}a_receiver_that_does_not_take_a_message_is_an_error_in_time",),
    ),
    Plant(
        "a file gets a message again",
        "engines/channels/message_file.py",
        "            if size and _has_message(file.fileno(), message.id):\n",
        "            if False:\n",
        (f"{CHANNELS}a_file_has_each_message_once",),
    ),
    Plant(
        "two processes look at a file at the same time",
        "engines/channels/message_file.py",
        "            fcntl.flock(file, fcntl.LOCK_EX)\n            size = ",
        "            size = ",
        (f"{CHANNELS}a_second_sender_waits_until_the_first_has_written",),
    ),
    Plant(
        "a password goes to a mail server whose certificate nobody checked",
        "engines/channels/mail.py",
        "                server.starttls(context=ssl.create_default_context())\n",
        "                server.starttls(context=ssl._create_unverified_context())\n",
        (f"{CHANNELS}mail_is_encrypted_before_the_password_is_sent",),
    ),
    Plant(
        "a missing variable counts as a failed attempt",
        "delivery/consumer_messages.py",
        '        raise MissingCredentials(f"channel',
        '        raise EngineError(f"channel',
        (f"{SENT}a_person_without_the_variable_of_a_channel_leaves_messages_as_they_are",),
    ),
    Plant(
        "a rollback shows the numbers of the publication",
        "delivery/occasions.py",
        '    is_undo = publication.kind == "rollback"\n',
        "    is_undo = False\n",
        (f"{SENT}a_rollback_tells_the_numbers_the_other_way",),
    ),
    Plant(
        "a consumer of a misspelt product hears nothing",
        "project/load.py",
        "            check_reads(project, products, top)\n",
        "            pass\n",
        (f"{DECLARED}consumers_of_unknown_products_are_refused",),
    ),
)
