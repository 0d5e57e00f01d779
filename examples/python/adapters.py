"""One script over the tools of five agent frameworks."""

import asyncio

import agentscript
from agentscript import adapters


def langchain_tools():
    from langchain_core.tools import tool

    @tool
    def get_customer(name: str) -> dict:
        """Look up a customer."""
        return {"name": name, "country": "PT" if name == "Ana" else "SE"}

    return adapters.from_langchain([get_customer])


def openai_tools():
    from agents import function_tool

    @function_tool
    async def list_orders(customer: str) -> list[int]:
        """Amounts of the orders of a customer, in euros."""
        return [120, 80] if customer == "Ana" else [45]

    return adapters.from_openai_agents([list_orders])


def pydantic_tools():
    from pydantic_ai import Tool

    def vat_rate(country: str) -> float:
        """The rate of VAT in a country."""
        return {"PT": 0.23, "SE": 0.25}[country]

    return adapters.from_pydantic_ai([Tool(vat_rate)])


def llama_index_tools():
    from llama_index.core.tools import FunctionTool

    def exchange(euros: float, currency: str = "USD") -> float:
        """Euros in another currency."""
        return euros * {"USD": 1.25, "SEK": 10}[currency]

    return adapters.from_llama_index([FunctionTool.from_defaults(exchange)])


def smolagents_tools():
    from smolagents import tool

    @tool
    def shout(text: str) -> str:
        """Writes a text in capitals.

        Args:
            text: The text.
        """
        return text.upper()

    return adapters.from_smolagents([shout])


SCRIPT = """
const customers = await Promise.all(['Ana', 'Bo'].map((name) => getCustomer({ name })));
const rows = await Promise.all(customers.map(async ({ name, country }) => {
  const [orders, rate] = await Promise.all([listOrders({ customer: name }), vatRate({ country })]);
  const net = orders.reduce((sum, order) => sum + order, 0);
  const usd = await exchange({ euros: net * (1 + rate) });
  return [await shout({ text: name }), Math.round(usd * 100) / 100];
}));
return Object.fromEntries(rows);
"""


async def main():
    tools = agentscript.Toolset(
        langchain_tools() + openai_tools() + pydantic_tools() + llama_index_tools() + smolagents_tools()
    )
    # What a model is told of them.
    print(tools.declarations())
    outcome = await agentscript.run_async(SCRIPT, tools=tools)
    print(outcome.result, "with", outcome.stats["toolCalls"], "calls")
    return outcome.result


if __name__ == "__main__":
    assert asyncio.run(main()) == {"ANA": 307.5, "BO": 70.31}
