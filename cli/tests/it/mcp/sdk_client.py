"""Clients built with the protocol's own SDK. Arguments: the program, a directory with token files. Each line that it
prints is one thing that it saw."""
import asyncio
import json
import os
import subprocess
import sys

from mcp import Client, MCPError, StdioServerParameters

tenure, room = sys.argv[1:]


def environment(token):
    return dict(os.environ) | {"TENURE_TOKEN_FILE": os.path.join(room, token)}


def client(token, mode):
    server = StdioServerParameters(command=tenure, args=["mcp"], cwd=room, env=environment(token))
    return Client(server, mode=mode)


def printed(line, token="api"):
    args = [tenure, "--json", *line.split()]
    ran = subprocess.run(args, cwd=room, env=environment(token), stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


READS = [
    ("check_authority", {}, "check"),
    ("list_sessions", {"all": True}, "sessions --all"),
    ("show_session", {"subject": "web"}, "show web"),
    ("show_session", {"subject": "d1"}, "show d1"),
    ("shared_checkout", {}, "shared"),
    ("list_work", {"all": True}, "work --all"),
    ("read_inbox", {}, "inbox api"),
    ("ask_who", {"subject": "item:style"}, "who item:style"),
    ("ask_who", {"subject": "api", "at": "2"}, "who api --at 2"),
]


async def same(agent, tool, arguments, line):
    result = await agent.call_tool(tool, arguments)
    given = result.structured_content
    objects = given["items"] if "items" in given else [given]
    return not result.is_error and objects == printed(line)


async def wrong(agent, tool, arguments):
    try:
        await agent.call_tool(tool, arguments)
        print("done", tool)
    except MCPError as error:
        print("wrong", error.error.code)


async def main():
    async with client("api", "auto") as first, client("api", "legacy") as old:
        for mode, agent in (("auto", first), ("legacy", old)):
            tools = (await agent.list_tools()).tools
            print(mode, agent.server_info.name, agent.protocol_version, len(tools))
        print("reading", *[tool.name for tool in tools if tool.annotations.read_only_hint])
        print("ending", *[tool.name for tool in tools if tool.annotations.destructive_hint])
        for agent in (first, old):
            equal = [await same(agent, *read) for read in READS]
        print("equal", sum(equal), "of", len(READS))
        done = (await first.call_tool("accept_dispatch", {"dispatch": "d1"})).structured_content
        print("accepted", done["dispatch"], *[other["session"] for other in done["shared_checkout"]])
        note = {"text": "hello", "idempotency_key": "k"}
        for agent in (first, old):
            print("noted", (await agent.call_tool("note_session", note)).structured_content["repeated"])
        await wrong(first, "adopt_session", {})
        await wrong(first, "note_session", {"text": "x", "token": "web@1"})
        adopt = "adopt api --force --reason because --pid none --token-file new"
        assert printed(adopt)[0]["generation"] == 2
        stale = await first.call_tool("note_session", {"text": "late"})
        said = stale.structured_content
        fields = ("code", "presented", "current", "relation")
        print("stale", stale.is_error, *[said[field] for field in fields])
        print("current", (await first.call_tool("check_authority", {})).structured_content["current"])
        async with client("new", "auto") as second:
            report = {"dispatch": "d1", "outcome": "done"}
            done = await second.call_tool("report_dispatch", report)
            print("reported", done.structured_content["state"])
        print("notes", len(printed("log --kind noted")))


asyncio.run(main())
