# Fullpipe from the wheel of `make wheel`. The kernel world needs --privileged and --device /dev/net/tun; the other worlds need nothing.
#
#   make wheel && docker build --tag fullpipe . && docker run --rm fullpipe advise --rate 50mbit --rtt 80ms --buffer 200KB
FROM python:3.13-slim
RUN --mount=type=bind,source=dist,target=/dist pip install --no-cache-dir --find-links /dist "$(ls /dist/fullpipe-[0-9]*.whl)[studies]"
WORKDIR /work
ENTRYPOINT ["fullpipe"]
