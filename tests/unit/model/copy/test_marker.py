"""What a swap may replace, by what earlier deliveries left."""

from __future__ import annotations

from errata.model.copy.checksum import EMPTY, Checksum
from errata.model.copy.marker import Content, Delivered, Marker, expect_contents

LEFT = Checksum(3, 30, 31)


def test_a_partition_that_was_never_delivered_is_expected_to_be_empty() -> None:
    """Rows in it are somebody else's, so that the first delivery does not overwrite them."""
    delivered = {"2026-01-01": Delivered(Content(1, LEFT), Marker("bf-1-p1", 1), "shape")}
    expected = expect_contents(("2026-01-01", "2026-01-02"), delivered)
    assert expected == {"2026-01-01": LEFT, "2026-01-02": EMPTY}
