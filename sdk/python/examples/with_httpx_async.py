"""Reads ten orders at the same time, with httpx. Arguments: key file, base URL."""

import asyncio
import sys

import httpx

import proofgate

key_file, base_url = sys.argv[1:]


async def main() -> None:
    async with httpx.AsyncClient(auth=proofgate.Auth(key_file), base_url=base_url) as client:
        orders = await asyncio.gather(*(client.get(f"/v1/orders/{n}") for n in range(10)))
    for order in orders:
        proofgate.raise_for_denial(order)
    print(*{order.status_code for order in orders})


asyncio.run(main())
