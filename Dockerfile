# A node, a worker, or any command of manage.py: docs/operations.md, "In containers".
FROM python:3.11-slim-bookworm AS packages
WORKDIR /opt/metalake
COPY requirements.txt ./
RUN python3 -m venv .venv && .venv/bin/python -m pip install --quiet --no-cache-dir --no-deps --require-hashes -r requirements.txt

FROM python:3.11-slim-bookworm
WORKDIR /opt/metalake
COPY --from=packages /opt/metalake/.venv .venv
COPY LICENSE manage.py ./
COPY access access
COPY authz authz
COPY catalogs catalogs
COPY formats formats
COPY frontend frontend
COPY iceberg_rest iceberg_rest
COPY jobs jobs
COPY metalake metalake
COPY metalake_client metalake_client
COPY outside outside
COPY pipelines pipelines
COPY providers providers
COPY server server
COPY views_mgmt views_mgmt
# The code is root's; the server's account writes below these folders alone, which volumes replace.
RUN python3 -m compileall -q . && mkdir -p -m 700 /var/lib/metalake /srv/lake /srv/metalake && chown 10001:10001 /var/lib/metalake /srv/lake /srv/metalake
ENV METALAKE_HOME=/var/lib/metalake METALAKE_HOST=0.0.0.0 METALAKE_PORT=8090 HOME=/var/lib/metalake PYTHONUNBUFFERED=1
USER 10001:10001
VOLUME ["/var/lib/metalake"]
EXPOSE 8090
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s CMD [".venv/bin/python", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ[\"METALAKE_PORT\"]}/health/ready', timeout=4)"]
ENTRYPOINT [".venv/bin/python", "manage.py"]
CMD ["serve"]
