"""A client that owns its tools and lets the server run the code: it keeps the token and gives answers.

    codecall serve --http 8931 &
    python evaluate.py http://127.0.0.1:8931
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.request import Request, urlopen


def get_temperature(city):
    """Temperature in a city, in degrees Celsius"""
    known = {"Oslo": -4, "Cairo": 24, "Lima": 19}
    if city not in known:
        raise LookupError(f"There is no weather in {city}")
    return {"city": city, "celsius": known[city]}


# The tools stay here: the server sees names and schemas only.
TOOLS = {
    "get_temperature": (
        get_temperature,
        {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    ),
}


def answer(call):
    function, _ = TOOLS[call["name"]]
    try:
        return {"id": call["id"], "result": function(**call["input"])}
    except Exception as error:
        return {"id": call["id"], "error": {"message": str(error)}}


def run(server, code):
    tools = [
        {"name": name, "description": function.__doc__, "inputSchema": schema}
        for name, (function, schema) in TOOLS.items()
    ]
    request = {"code": code, "tools": tools}
    with ThreadPoolExecutor() as threads:
        while True:
            body = json.dumps(request).encode()
            sent = Request(f"{server}/v1/evaluate", body, {"content-type": "application/json"})
            with urlopen(sent) as response:
                step = json.load(response)
            if step["status"] != "calls":
                return step["outcome"] if step["status"] == "done" else step
            request["token"] = step["token"]
            request["results"] = list(threads.map(answer, step["calls"]))


CODE = """
  const cities = ['Oslo', 'Atlantis', 'Cairo', 'Lima'];
  const settled = await Promise.allSettled(cities.map((city) => getTemperature({ city })));
  const known = settled.filter((one) => one.status === 'fulfilled').map((one) => one.value);
  const missing = settled.filter((one) => one.status === 'rejected').map((one) => one.reason.message);
  const warmest = known.reduce((best, one) => (one.celsius > best.celsius ? one : best));
  const again = await getTemperature({ city: warmest.city });
  return { warmest: again, missing };
"""

if __name__ == "__main__":
    server = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8931"
    print(json.dumps(run(server, CODE)))
