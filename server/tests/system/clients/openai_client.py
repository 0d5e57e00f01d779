"""OpenAI's own library as a client: BASE_URL=… python openai_client.py '{"prompt", "stream", "codeMessages"}'

It calls its tools itself, and prints what it keeps of the conversation as JSON.
"""

import json
import os
import sys
from urllib.parse import quote

from openai import OpenAI

options = json.loads(sys.argv[1])
client = OpenAI(base_url=os.environ["BASE_URL"], api_key="sk-client", max_retries=0)

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "web_search",
            "description": "Search the web for news",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        },
    }
]


def found(query):
    return [{"title": f"About {query}", "url": f"https://example.com/{quote(query)}"}]


messages = [
    {"role": "system", "content": "You know the news."},
    {"role": "user", "content": options["prompt"]},
]
spoken = []
requests = 0
while True:
    requests += 1
    question = {"model": "tiny", "messages": messages, "tools": TOOLS}
    if options.get("codeMessages"):
        question["extra_body"] = {"codecall": {"code_messages": True}}
    kept = None
    if options.get("stream"):
        with client.chat.completions.stream(**question, stream_options={"include_usage": True}) as stream:
            for event in stream:
                if event.type == "content.delta":
                    spoken.append(event.delta)
                elif event.type == "chunk":
                    told = (event.chunk.model_extra or {}).get("codecall")
                    kept = told["messages"] if told else kept
            message = stream.get_final_completion().choices[0].message
    else:
        completion = client.chat.completions.create(**question)
        message = completion.choices[0].message
        told = (completion.model_extra or {}).get("codecall")
        kept = told["messages"] if told else None
    messages.extend(kept if options.get("codeMessages") else [message.model_dump(exclude_none=True)])
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        content = json.dumps(found(**json.loads(call.function.arguments)))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

print(json.dumps({"messages": messages, "requests": requests, "spoken": "".join(spoken)}))
