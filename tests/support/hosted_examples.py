"""Examples whose pods run as processes of this machine: their files as they are, but for the image, and for what the
cluster would mount.

    jobs.apply(hosted("s3-publish/job.yaml", s3.environment(), {"/publish/": f"{EXAMPLES}/s3-publish/"}))
"""

import yaml

from host_node import HOSTED
from worker_examples import EXAMPLES


def hosted(path, environment=(), words=(), args=None, pod=None, **spec):
    """The DurableJob of this file. `words`: what stands in its command for another text; `args`, and fields of the pod
    and of the spec, are set."""
    [body] = [one for one in yaml.safe_load_all((EXAMPLES / path).read_text()) if one["kind"] == "DurableJob"]
    template = body["spec"]["template"]["spec"]
    template.pop("volumes", None)
    [container] = template["containers"]
    for field in ("volumeMounts", "envFrom"):
        container.pop(field, None)
    container["env"] = [one for one in container.get("env", []) if one["name"] not in dict(environment)] + [
        {"name": name, "value": str(value)} for name, value in dict(environment).items()]
    if args:
        container["args"] = [str(word) for word in args]
    for field in ("command", "args"):
        for old, new in dict(words).items():
            container[field] = [word.replace(old, str(new)) for word in container.get(field, [])]
    template.update(HOSTED | (pod or {}))
    body["spec"].update(spec)
    return body
