# One image; the command chooses the part: web, worker, beat, migrate, or serve for all of them at once.

# The full image has a compiler, for packages that have no wheel for the processor.
FROM python:3.11-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv --without-pip /opt/venv
COPY requirements.lock /app/
RUN pip --python /opt/venv/bin/python install --require-hashes -r /app/requirements.lock
WORKDIR /app
COPY pyproject.toml README.md LICENSE ./
COPY backend backend
COPY client client
COPY frontend frontend
COPY migrations migrations
# Editable, because frontend/ and migrations/ are found beside backend/.
RUN pip --python /opt/venv/bin/python install --no-deps --no-build-isolation -e . -e ./client \
    && pip --python /opt/venv/bin/python uninstall --yes hatchling editables \
    && /opt/venv/bin/python -m compileall -q backend client migrations

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --user-group --home-dir /var/lib/gapwatch --shell /usr/sbin/nologin gapwatch \
    && install -d -o gapwatch -g gapwatch -m 700 /var/lib/gapwatch
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2 \
    GAPWATCH_HOST=0.0.0.0 \
    GAPWATCH_DATA_DIR=/var/lib/gapwatch
USER 10001:10001
EXPOSE 8000
# Of web and serve; docker-compose.yml has those of worker and beat.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import http.client, os, sys; web = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('GAPWATCH_PORT', '8000')), timeout=3); web.request('GET', '/healthz'); sys.exit(web.getresponse().status != 200)"]
ENTRYPOINT ["gapwatch"]
CMD ["serve"]
