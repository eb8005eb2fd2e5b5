#!/usr/bin/env python3
"""Receives notifications of Holdfast, checks their signatures, and prints one line for each event.

    pip install standardwebhooks cloudevents
    WEBHOOK_SECRET=whsec_... ./receiver.py --port 8443 --certificate tls.crt --key tls.key

Behind an Ingress that ends TLS, leave out the certificate. It answers 204 once the event is taken, 400 to a wrong
signature, and takes an event that comes twice only once. With --show it prints the whole message too.
"""

import argparse
import collections
import http.server
import os
import ssl

from cloudevents.v1.http import from_http
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

MOST_BYTES = 64 * 1024
REMEMBERED = 10_000
SHOWN = ("webhook-id", "webhook-timestamp", "webhook-signature", "content-type")
seen = collections.OrderedDict()  # the last events: id and time


def take(event):
    """Do your own work here: queue it, and return soon."""
    data = event.data
    print(f"{event['time']} {event['subject']} {data['event']}: {data['reason']}: {data['message']}", flush=True)


class Receiver(http.server.BaseHTTPRequestHandler):
    timeout = 15

    def do_POST(self):
        self.send_response(self.answer())
        self.send_header("content-length", "0")
        self.end_headers()

    def answer(self):
        size = int(self.headers.get("content-length") or 0)
        if size > MOST_BYTES:
            return 413
        body = self.rfile.read(size)
        headers = {key.lower(): value for key, value in self.headers.items()}
        try:
            Webhook(os.environ["WEBHOOK_SECRET"]).verify(body, headers)
        except WebhookVerificationError:
            return 400
        event = from_http(headers, body)
        # After a restore of the cluster from a backup, another event may have the same id.
        key = (headers["webhook-id"], event["time"])
        if key not in seen:
            if self.server.show:
                print("".join(f"{name}: {headers[name]}\n" for name in SHOWN) + body.decode(), flush=True)
            take(event)
            seen[key] = True
            if len(seen) > REMEMBERED:
                seen.popitem(last=False)
        return 204

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8443)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("", options.port), Receiver)
    server.show = options.show
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(f"listening on port {server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
