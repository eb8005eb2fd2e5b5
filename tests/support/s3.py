"""A real S3 server for a test, with conditional writes (hack/tools/s3).

    with S3() as s3:
        s3.get("published/17")          # None: there is none
        s3.keys("published/")
"""

import re
import subprocess
import tempfile
import urllib.error
import urllib.request
import xml.etree.ElementTree

from holdfast import die_with_parent
from localcluster import wait_for
from localcluster.tools import ensure_s3

BUCKET = "bucket"
LISTED = "{http://s3.amazonaws.com/doc/2006-03-01/}"


class S3:
    """A server with one empty bucket."""

    def __enter__(self):
        self._log = tempfile.NamedTemporaryFile("rb", prefix="holdfast-s3-")
        with open(self._log.name, "wb") as log:
            self._server = subprocess.Popen([str(ensure_s3()), "127.0.0.1:0", BUCKET], stdout=log, stderr=log,
                                            preexec_fn=die_with_parent)
        found = wait_for("the S3 server to listen", lambda: re.search(rb"listening on (\S+)\n", self._read()), 60,
                         log=self._log.name, alive=lambda: self._server.poll() is None)
        self.url = f"http://{found[1].decode()}/{BUCKET}"
        return self

    def _read(self):
        self._log.seek(0)
        return self._log.read()

    def __exit__(self, *_):
        self._server.kill()
        self._server.wait()
        self._log.close()

    def environment(self):
        """The variables by which examples/s3-publish finds it."""
        return {"S3_BUCKET_URL": self.url, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}

    def get(self, key):
        """The object's text, or None."""
        status, text = self._call(f"/{key}")
        return text if status == 200 else None

    def put(self, key, text, **conditions):
        """The HTTP status. Conditions are headers: if_match="..."."""
        headers = {name.replace("_", "-"): value for name, value in conditions.items()}
        return self._call(f"/{key}", method="PUT", data=text.encode(), headers=headers)[0]

    def keys(self, prefix=""):
        """Of all objects whose keys begin so."""
        listed = xml.etree.ElementTree.fromstring(self._call(f"?list-type=2&prefix={prefix}")[1])
        return [key.text for key in listed.iter(f"{LISTED}Key")]

    def _call(self, path, **request):
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, **request), timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
