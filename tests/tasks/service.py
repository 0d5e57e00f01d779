"""A shop that describes itself with OpenAPI: `python service.py PORT`. It has pages, a rate limit, odd money and odd dates.

`DELETE /calls` forgets which calls were made.
"""

import sys
import time

import uvicorn
from fastapi import FastAPI, HTTPException, Response
from pydantic import BaseModel, Field

#: Prices are given so often in a second.
MOST = 5

app = FastAPI(title="Shop", separate_input_output_schemas=False)
calls: list[float] = []


class Order(BaseModel):
    id: int
    customer: str
    status: str
    cents: int


class Orders(BaseModel):
    orders: list[Order]
    next: str | None = Field(description="The cursor of the next page; null on the last one")


class Price(BaseModel):
    id: int
    cents: int


class Shipment(BaseModel):
    id: int
    due: str = Field(description="DD.MM.YYYY")
    arrived: int = Field(description="Seconds since 1970, UTC")


NAMES = ["Ada", "Bruno", "Chen", "Dana"]
ORDERS = [
    Order(id=n, customer=NAMES[n % 4], status=["paid", "open", "paid"][n % 3], cents=1000 + n * 250) for n in range(1, 31)
]


@app.get("/orders", operation_id="list_orders", summary="List orders, ten a page")
def list_orders(cursor: str | None = None) -> Orders:
    start = int(cursor or 0)
    return Orders(orders=ORDERS[start : start + 10], next=str(start + 10) if start < 20 else None)


@app.get("/prices/{id}", operation_id="get_price", summary="Get the price of a product")
def get_price(id: int) -> Price:
    now = time.monotonic()
    calls[:] = [at for at in calls if now - at < 1]
    if len(calls) >= MOST:
        raise HTTPException(429, f"{MOST} prices a second", {"Retry-After": "1"})
    calls.append(now)
    return Price(id=id, cents=id * 125)


@app.get("/invoices", operation_id="list_invoices", summary="List invoices")
def list_invoices():
    amounts = ["1.234,50 €", "99,00 €", "2.000,00 €", "15,25 €"]
    return {"invoices": [{"no": n + 1, "customer": NAMES[n], "amount": amount} for n, amount in enumerate(amounts)]}


@app.get("/shipments", operation_id="list_shipments", summary="List shipments")
def list_shipments() -> list[Shipment]:
    days = [("03.04.2026", 1775044800), ("04.03.2026", 1772755200), ("12.01.2026", 1768089600), ("01.12.2026", 1796256000)]
    return [Shipment(id=n + 1, due=due, arrived=arrived) for n, (due, arrived) in enumerate(days)]


@app.get("/stock", operation_id="list_stock", summary="List the stock of all warehouses")
def list_stock():
    return {"warehouses": {"north": [{"product": 1, "left": 3}, {"product": 2, "left": 0}], "south": [{"product": 1, "left": 4}]}}


@app.get("/sales.csv", operation_id="export_sales", summary="Export sales as CSV: region, seller, amount")
def export_sales():
    rows = ['north,"Lee, Ann",1200', "south,Bob,300", 'north,"O""Neil, Pat",700', "south,Cara,450"]
    return Response("region,seller,amount\r\n" + "\r\n".join(rows) + "\r\n", media_type="text/csv")


@app.delete("/calls", include_in_schema=False)
def forget_calls() -> None:
    calls.clear()


uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
