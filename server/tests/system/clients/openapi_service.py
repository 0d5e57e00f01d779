"""A service with FastAPI, on 127.0.0.1 at the port of the first argument."""

import sys
from datetime import date
from typing import Annotated

import uvicorn
from fastapi import Cookie, Depends, FastAPI, Form, Header, Path, Query, UploadFile
from fastapi.security import APIKeyQuery, HTTPBasic, HTTPBasicCredentials, OAuth2PasswordRequestForm
from pydantic import BaseModel

app = FastAPI()


class Inner(BaseModel):
    more: list[int] = []


class Item(BaseModel):
    name: str
    price: float
    made: date | None = None
    inner: Inner | None = None


@app.get("/items/{id}", operation_id="item")
def item(
    id: Annotated[int, Path()],
    tags: Annotated[list[str], Query()] = [],
    x_list: Annotated[str | None, Header()] = None,
    session: Annotated[str | None, Cookie()] = None,
):
    if id == 0:
        from fastapi.exceptions import RequestValidationError

        raise RequestValidationError([{"loc": ["path", "id"], "msg": "there is none", "type": "value_error"}])
    return {"id": id, "tags": tags, "header": x_list, "session": session}


@app.post("/items", operation_id="add")
def add(item: Item) -> Item:
    return item


@app.post("/login", operation_id="login")
def login(form: Annotated[OAuth2PasswordRequestForm, Depends()]):
    return {"username": form.username, "password": form.password, "scopes": form.scopes}


@app.post("/upload", operation_id="upload")
async def upload(files: list[UploadFile], title: Annotated[str, Form()]):
    return {"title": title, "files": [[file.filename, len(await file.read())] for file in files]}


@app.get("/basic", operation_id="basic")
def basic(user: Annotated[HTTPBasicCredentials, Depends(HTTPBasic())]):
    return {"user": user.username, "password": user.password.endswith("1234567890")}


@app.get("/key", operation_id="key")
def key(key: Annotated[str, Depends(APIKeyQuery(name="api_key"))]):
    return {"key": key == "key-" + "1234567890"}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
