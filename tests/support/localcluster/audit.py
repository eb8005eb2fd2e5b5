"""Reading the API server's audit log: who wrote what, and who was denied what. Mixed into Cluster."""

import json
import os

# Set by the authorizer: a 403 of admission (a quota, a policy) has "allow" there.
DECISION = "authorization.k8s.io/decision"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
# Ends a line that an API server was killed in the middle of. No event ends so: each is one JSON object.
CUT = b" cut\n"


class AuditMixin:
    """Expects `folder` of Cluster. Events from before begin_audit() are ignored."""

    _audit_begin = 0

    def begin_audit(self):
        """Ignores all events that are in the log by now."""
        self._audit_begin = self.audit_offset()

    @property
    def audit_log(self):
        """The log: one JSON event per line, in the order in which requests ended."""
        return self.folder / "logs" / "audit.log"

    def audit_offset(self):
        """Where the log ends now; give it to audit_events later."""
        try:
            return self.audit_log.stat().st_size
        except FileNotFoundError:
            return 0

    def end_cut_audit_line(self):
        """Ends the line that a killed API server may have left half written, so that the next one, which appends,
        begins a line of its own. No API server runs meanwhile."""
        try:
            with open(self.audit_log, "rb+") as log:
                if log.seek(0, os.SEEK_END):
                    log.seek(-1, os.SEEK_END)
                    if log.read(1) != b"\n":
                        log.write(CUT)
        except FileNotFoundError:
            pass

    def audit_events(self, since_offset=0):
        """(events, offset behind them). An event is written right after its response is sent, so
        one that is waited for may be there a moment later: poll."""
        events = []
        since_offset = offset = max(since_offset, self._audit_begin)
        try:
            with open(self.audit_log, "rb") as log:
                log.seek(max(0, since_offset - 1))
                if since_offset and log.read(1) != b"\n":
                    # The log was in the middle of a line: that event was before.
                    rest = log.readline()
                    if not rest.endswith(b"\n"):
                        return events, offset
                    offset += len(rest)
                for line in log:
                    if not line.endswith(b"\n"):
                        break  # half written
                    offset += len(line)
                    if line.endswith(CUT):
                        continue
                    event = json.loads(line)
                    if event.get("stage") in ("ResponseComplete", "Panic"):
                        events.append(event)
        except FileNotFoundError:
            pass
        return events, offset

    def audit_writes(self, user, since_offset=0, accepted_only=True):
        """This user's writes as (verb, resource, subresource, namespace, name, code)."""
        found = []
        for event in self.audit_events(since_offset)[0]:
            if event["verb"] not in WRITES or event["user"]["username"] != user:
                continue
            if "dryRun=" in event.get("requestURI", ""):
                continue
            code = event.get("responseStatus", {}).get("code", 0)
            if accepted_only and not 200 <= code < 300:
                continue
            about = event.get("objectRef", {})
            found.append((event["verb"], about.get("resource", ""), about.get("subresource", ""),
                          about.get("namespace", ""), about.get("name", ""), code))
        return found

    def audit_rights(self, user_agent):
        """(allowed, denied): what clients whose user agent begins so asked for, each a set of
        (API group, resource, verb, namespace), a subresource as pods/log."""
        decided = {"allow": set(), "forbid": set()}
        for event in self.audit_events()[0]:
            about = event.get("objectRef")
            decision = event.get("annotations", {}).get(DECISION)
            if decision not in decided or not about or not event.get("userAgent", "").startswith(user_agent):
                continue
            resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
            decided[decision].add((about.get("apiGroup", ""), resource, event["verb"], about.get("namespace", "")))
        return decided["allow"], decided["forbid"]
