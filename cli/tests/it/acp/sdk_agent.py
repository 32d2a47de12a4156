"""An agent built with the protocol's own SDK: says under which generation it was asked, and writes a file."""
import asyncio

import acp
from acp import schema


class Agent:
    def __init__(self):
        self.client = None
        self.made = 0

    def on_connect(self, client):
        self.client = client

    async def initialize(self, protocol_version, **_):
        capabilities = schema.AgentCapabilities(load_session=True)
        return schema.InitializeResponse(protocol_version=protocol_version, agent_capabilities=capabilities)

    async def new_session(self, cwd, **_):
        self.made += 1
        return schema.NewSessionResponse(session_id=f"sdk-{self.made}")

    async def load_session(self, cwd, session_id, **_):
        return schema.LoadSessionResponse()

    async def prompt(self, session_id, prompt, **meta):
        told = acp.update_agent_message_text(f"generation {meta['tenure']['generation']}")
        await self.client.session_update(session_id, told)
        await self.client.write_text_file(session_id=session_id, path=prompt[0].text, content="written")
        return schema.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id, **_):
        pass


asyncio.run(acp.run_agent(Agent()))
