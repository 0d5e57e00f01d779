"""An ordinary client of chat completions, with tools of its own. That code runs in between, it need not know.

    codecall serve --http 8931 --config codecall.toml &      # with model.url and model.key
    pip install openai
    OPENAI_BASE_URL=http://127.0.0.1:8931/v1 OPENAI_API_KEY=- MODEL=gpt-5-mini python chat.py "Which city is warmest?"
"""

import json
import os
import sys

from openai import OpenAI

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_temperature",
            "description": "Temperature in a city, in degrees Celsius: Oslo, Cairo or Lima",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


def get_temperature(city):
    known = {"Oslo": -4, "Cairo": 24, "Lima": 19}
    if city not in known:
        return {"error": {"message": f"There is no weather in {city}"}}
    return {"city": city, "celsius": known[city]}


client = OpenAI()
messages = [{"role": "user", "content": sys.argv[1] if len(sys.argv) > 1 else "Which city is warmest?"}]
while True:
    completion = client.chat.completions.create(
        model=os.environ.get("MODEL", "gpt-5-mini"), messages=messages, tools=TOOLS
    )
    message = completion.choices[0].message
    messages.append(message)
    if not message.tool_calls:
        print(message.content)
        break
    for call in message.tool_calls:
        content = json.dumps(get_temperature(**json.loads(call.function.arguments)))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
