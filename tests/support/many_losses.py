"""Many attempts that are lost together, as the audit log has them."""

from losses import ANSWERED, seconds_of


def accepted(event):
    return 200 <= event.get("responseStatus", {}).get("code", 0) < 300


def verdicts(cluster, offset, user, moment=ANSWERED):
    """When the first loss of each job was on record, by the job's name. `moment`: see losses.CAME."""
    found = {}
    for event in cluster.audit_events(offset)[0]:
        about = event.get("objectRef", {})
        if event["verb"] != "update" or about.get("resource") != "durablejobs" or event["user"]["username"] != user:
            continue
        status = (event.get("requestObject") or {}).get("status", {})
        if accepted(event) and status.get("disruptions", 0) == 1:
            found.setdefault(about["name"], seconds_of(event[moment]))
    return found


def lease_reads(cluster, offset, node, user):
    """The live reads of the node's Lease: (sent, answered), oldest first."""
    return sorted(
        (seconds_of(event["requestReceivedTimestamp"]), seconds_of(event["stageTimestamp"]))
        for event in cluster.audit_events(offset)[0]
        if event["verb"] == "get" and event["user"]["username"] == user
        and event.get("objectRef", {}).get("resource") == "leases"
        and event["objectRef"].get("name") == node
    )
