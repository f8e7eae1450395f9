"""tls.py SERVER CERTIFICATE KEY: passes what comes over TLS on to SERVER (host:port); prints the port it listens at."""

import asyncio
import ssl
import sys


async def pass_on(source, sink):
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass
    finally:
        sink.close()


async def main(server, certificate, key):
    host, port = server.rsplit(":", 1)

    async def accept(theirs, ours):
        try:
            from_server, to_server = await asyncio.open_connection(host, port)
        except OSError:
            ours.close()
            return
        await asyncio.gather(pass_on(theirs, to_server), pass_on(from_server, ours))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    print(listener.sockets[0].getsockname()[1], flush=True)
    await listener.serve_forever()


asyncio.run(main(*sys.argv[1:]))
