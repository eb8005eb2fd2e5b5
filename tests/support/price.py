"""What requests cost the API server."""

import re


def allocated(cluster):
    """Bytes that the API server has ever allocated."""
    text = cluster.api("GET", "/metrics")[1]
    return float(re.search(r"^go_memstats_alloc_bytes_total (\S+)", text, re.MULTILINE)[1])
