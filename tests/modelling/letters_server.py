"""A server of the completions protocol, which answers from a model of letters.

    python letters_server.py PORT [OPTIONS]

Options: --most N alternatives, --single (no lists of prompts), --drop N (every Nth request is not answered), --slow SECONDS, --chat (answers in
llama.cpp's form, and no echo), --key KEY. GET /asked tells the number of requests.
"""

import argparse
import asyncio
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from tiny_models import Markov

LETTERS = (b"", b" ", b"\n", b"e", b"t", b"a", b"o", b".")


class DroppedError(Exception):
    """The connection is closed without an answer."""


def letters():
    """Return the model: each letter is a token, so a text has one spelling."""
    return Markov(7, LETTERS, going_on=0.5)


def answer(model, request, prompt, most, chat):
    prompt = "".join(c for c in prompt if c.encode() in LETTERS[1:])
    tokens = model.encode(prompt)
    after = model.table[tokens[-1]]
    wanted = request["logprobs"]
    best = np.argsort(-after)[: min(wanted, most)]
    names = [model.texts[token].decode() or "</s>" for token in best]
    logs = np.log(after[best]).tolist()
    if chat:
        listed = [
            {"token": name, "bytes": list(name.encode()), "logprob": log}
            for name, log in zip(names, logs, strict=True)
        ]
        return {"content": [{"token": names[0], "logprob": logs[0], "top_logprobs": listed}]}
    found = {"tokens": names[:1], "token_logprobs": logs[:1], "text_offset": [len(prompt)],
             "top_logprobs": [dict(zip(names, logs, strict=True))]}  # fmt: skip
    if request.get("echo"):
        pairs = pairwise(tokens)  # behind the token that begins texts
        of_prompt = [float(np.log(model.table[before, token])) for before, token in pairs]
        found |= {"tokens": [*prompt, names[0]], "token_logprobs": [*of_prompt, logs[0]],
                  "text_offset": list(range(len(prompt) + 1))}  # fmt: skip
    return found


def application(given):
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    model, asked = letters(), [0]

    async def completions(request):
        asked[0] += 1
        if given.key and request.headers.get("authorization") != f"Bearer {given.key}":
            return JSONResponse({"error": "who are you?"}, 401)
        await asyncio.sleep(given.slow)
        if given.drop and asked[0] % given.drop == 0:
            if asked[0] % (2 * given.drop) == 0:
                return JSONResponse({"error": "busy"}, 503)
            raise DroppedError
        body = await request.json()
        if body["logprobs"] > given.most:
            return JSONResponse({"error": f"at most {given.most} logprobs"}, 400)
        prompts = body["prompt"]
        if given.single and isinstance(prompts, list):
            return JSONResponse({"error": "cannot unmarshal array into Go struct field .prompt of type string"}, 400)
        prompts = prompts if isinstance(prompts, list) else [prompts]
        choices = [
            {"text": "", "index": index, "logprobs": answer(model, body, prompt, given.most, given.chat)}
            for index, prompt in enumerate(prompts)
        ]
        usage = {"total_tokens": sum(len(prompt) + 1 for prompt in prompts)}
        return JSONResponse({"choices": choices[::-1], "usage": usage})  # in any order

    routes = [
        Route("/v1/completions", completions, methods=["POST"]),
        Route("/asked", lambda _: JSONResponse(asked[0])),
    ]
    return Starlette(routes=routes)


def main():
    import uvicorn

    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--most", type=int, default=20)
    parser.add_argument("--single", action="store_true")
    parser.add_argument("--drop", type=int, default=0)
    parser.add_argument("--slow", type=float, default=0)
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("--key")
    given = parser.parse_args()
    uvicorn.run(application(given), port=given.port, log_level="critical")


if __name__ == "__main__":
    main()
