# SPDX-License-Identifier: Apache-2.0
# A gRPC server and client, without generated code: messages are bytes. Python's library is the C
# core, which most languages but Go and Java use.
import sys
from concurrent import futures

import grpc

COUNT = 100


class Echo(grpc.GenericRpcHandler):
    def service(self, call):
        if call.method == "/test.Echo/Unary":
            return grpc.unary_unary_rpc_method_handler(lambda request, context: request)
        if call.method == "/test.Echo/Peer":
            return grpc.unary_unary_rpc_method_handler(lambda request, context: context.peer().encode())
        if call.method == "/test.Echo/Stream":
            return grpc.stream_stream_rpc_method_handler(lambda requests, context: requests)
        return None


def serve(address):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), handlers=[Echo()])
    if server.add_insecure_port(address) == 0:
        sys.exit(f"cannot listen on {address}")
    server.start()
    server.wait_for_termination()


def call(address):
    with grpc.insecure_channel(address) as channel:
        print("unary:", channel.unary_unary("/test.Echo/Unary")(b"hello", timeout=10).decode())
        print("peer:", channel.unary_unary("/test.Echo/Peer")(b"", timeout=10).decode())
        sent = [b"%d" % i for i in range(COUNT)]
        got = list(channel.stream_stream("/test.Echo/Stream")(iter(sent), timeout=10))
        order = "in order" if got == sent else "not as sent"
        print(f"stream: {len(got)} of {COUNT}, {order}")


{"serve": serve, "call": call}[sys.argv[1]](sys.argv[2])
