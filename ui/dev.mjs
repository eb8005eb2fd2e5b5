// For whoever works on the page: builds it when a file changes, and serves it against what dev/ has recorded.
//
//   make ui-dev      then open the address that it prints
import { createServer } from "node:http";
import { readFileSync, watch } from "node:fs";
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ui = dirname(fileURLToPath(import.meta.url));
const out = join(ui, "../build/ui");
const token = "0".repeat(64);
const files = {
  "/": ["index.html", "text/html"], "/app.js": ["app.js", "text/javascript"], "/app.css": ["app.css", "text/css"],
  "/icon.svg": ["icon.svg", "image/svg+xml"], "/licenses.txt": ["licenses.txt", "text/plain"],
};

const build = () => spawnSync("node", ["build.mjs", out], { cwd: ui, stdio: "inherit" });
let timer;
for (const folder of ["src", "src/parts", "src/screens"]) {
  watch(join(ui, folder), () => {
    clearTimeout(timer);
    timer = setTimeout(build, 100);
  });
}
build();

const recorded = (name) => JSON.parse(readFileSync(join(ui, "dev", `${name}.json`), "utf8"));

const server = createServer((request, reply) => {
  const url = new URL(request.url, "http://127.0.0.1");
  const file = files[url.pathname];
  if (file) {
    reply.writeHead(200, { "Content-Type": file[1] });
    return reply.end(readFileSync(join(out, file[0])));
  }
  const json = (body) => {
    reply.writeHead(200, { "Content-Type": "application/json" });
    reply.end(JSON.stringify(body));
  };
  if (url.pathname === "/api/events") {
    reply.writeHead(200, { "Content-Type": "text/event-stream" });
    const screen = recorded(url.searchParams.get("screen"));
    return reply.write(`data: ${JSON.stringify({ now: recorded("now"), scope: "recorded data", synced: true, trouble: "", screen })}\n\n`);
  }
  if (url.pathname === "/api/rights") return json({ patch: true, create: true });
  if (url.pathname === "/api/action") return json({ commands: ["kubectl holdfast cancel film-17 -n media"], results: [] });
  if (url.pathname === "/api/log") return json({ log: "a line\nanother line\n" });
  reply.writeHead(404);
  return reply.end();
});
server.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/#token=${token}`);
});
