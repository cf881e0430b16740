# SPDX-License-Identifier: Apache-2.0
# A WebSocket server that echoes, and a client.
import asyncio
import sys

import websockets

COUNT = 100


async def echo(connection):
    async for message in connection:
        await connection.send(message)


async def serve(host, port):
    async with websockets.serve(echo, host, int(port)):
        await asyncio.Future()


async def call(host, port):
    async with websockets.connect(f"ws://{host}:{port}/", open_timeout=10) as connection:
        got = 0
        for i in range(COUNT):
            await connection.send(str(i))
            got += await asyncio.wait_for(connection.recv(), 10) == str(i)
        print(f"{got} of {COUNT}, in order, from {connection.remote_address[0]}")


asyncio.run({"serve": serve, "call": call}[sys.argv[1]](*sys.argv[2:]))
