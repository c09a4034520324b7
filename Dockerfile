FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir --prefix=/install ".[postgres]"

FROM python:3.13-slim
COPY --from=build /install /usr/local
RUN useradd --system --create-home --uid 10001 interlock && install -d -o interlock -g interlock -m 0700 /data
USER interlock
ENV INTERLOCK_DATA_DIR=/data
VOLUME /data
EXPOSE 8750
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD \
    ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8750/readyz', timeout=2)"]
CMD ["interlock", "serve"]
