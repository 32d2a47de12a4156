"""An agent of the Agent Client Protocol that does what its prompts say, and answers with what it was sent."""
import json
import os
import sys

made = 0


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(message, result):
    send({"id": message["id"], "result": result})


def ask(method, params):
    """Asks the client, and waits for what it says."""
    send({"id": "asked-1", "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "asked-1" and "method" not in message:
            return message
        heard(message)
    sys.exit(0)


def heard(message):
    global made
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        answer(message, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    elif method in ("session/new", "session/fork"):
        made += 1
        answer(message, {"sessionId": f"{os.environ.get('PREFIX', 'sess')}-{made}", "models": {"n": 1.50}})
    elif method in ("session/load", "session/resume"):
        if params["sessionId"].startswith("absent"):
            send({"id": message["id"], "error": {"code": -32002, "message": "no such session"}})
        else:
            answer(message, None)
    elif method == "session/prompt":
        word, _, rest = params["prompt"][0]["text"].partition(" ")
        told = None
        if word == "lose":
            word, _, line = rest.partition(" ")
            os.popen(line).read()
            rest = "/lost"
        if word == "write":
            told = ask("fs/write_text_file", {"sessionId": params["sessionId"], "path": rest, "content": "x"})
        elif word == "run":
            told = ask("terminal/create", {"sessionId": params["sessionId"], "command": rest})
        elif word == "hook":
            told = os.popen(rest).read()
        elif word == "env":
            told = sorted(name for name in os.environ if name.startswith("TENURE_"))
        elif word == "noise":
            print("this is no JSON", flush=True)
        answer(message, {"stopReason": "end_turn", "told": told, "sent": params})
    elif method == "exit":
        sys.exit(params["code"])
    elif "id" in message:
        answer(message, {"method": method, "sent": params})


for line in sys.stdin:
    heard(json.loads(line))
