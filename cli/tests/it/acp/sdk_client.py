"""A client built with the protocol's own SDK. Arguments: the program, an agent, a directory. Each line that it prints is
one thing that it saw."""
import asyncio
import os
import subprocess
import sys

import acp
from acp import schema
from acp.stdio import spawn_agent_process

tenure, agent, top = sys.argv[1:]


class Client:
    async def session_update(self, session_id, update, **_):
        print("update", session_id, update.content.text)

    async def write_text_file(self, session_id, path, content, **meta):
        print("write", os.path.basename(path), content, meta["tenure"]["generation"])
        return schema.WriteTextFileResponse()

    def on_connect(self, agent):
        pass


def proxied():
    return spawn_agent_process(Client(), tenure, "acp", "--", sys.executable, agent, env=dict(os.environ))


async def refused(what, call):
    try:
        await call
        print(what, "was done")
    except acp.RequestError as error:
        print(what, error.code, error.data["tenure"]["code"])


async def main():
    async with proxied() as (first, _), proxied() as (second, _):
        for client in (first, second):
            answer = await client.initialize(protocol_version=acp.PROTOCOL_VERSION)
            print("loads", answer.agent_capabilities.load_session)
        begun = await first.new_session(cwd=top, mcp_servers=[])
        session = begun.session_id
        print("begun", session, begun.field_meta["tenure"]["token"])
        prompt = [acp.text_block(os.path.join(top, "a.txt"))]
        answer = await first.prompt(session_id=session, prompt=prompt)
        print("stopped", answer.stop_reason)
        await refused("load", second.load_session(cwd=top, session_id=session, mcp_servers=[]))
        subprocess.run([tenure, "--quiet", "retire", f"{session}@1"], check=True)
        loaded = await second.load_session(cwd=top, session_id=session, mcp_servers=[])
        print("loaded", loaded.field_meta["tenure"]["generation"])
        await refused("prompt", first.prompt(session_id=session, prompt=prompt))
        answer = await second.prompt(session_id=session, prompt=prompt)
        print("stopped", answer.stop_reason)


asyncio.run(main())
