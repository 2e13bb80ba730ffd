"""The same sums from every engine, over one store on an S3-compatible server.

In: the page with the tables and queries (docs/fleet.md), the store's directory, what its waits add up to, the program of `holdup fleet sql`, and
the folder for Spark's downloads. Out: a line an engine with its time; the status says whether all agree to the nanosecond.

The page's own tables and queries are run, with the store's address in the place of the page's. Sums are then asked for as integers, by host and
cause, and compared one by one.
"""
import csv
import io
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

page, store, expected, fleet_sql, downloads = sys.argv[1:]
expected = int(expected)
BUCKET, PREFIX = "ops", "holdup"
CORES_OF_A_WORKER = 1
MEMORY_OF_A_WORKER = "1g"

with open(page, encoding="utf-8") as file:
    blocks = {}
    for engine, text in re.findall(r"```sql (\w+)\n(.*?)```", file.read(), re.S):
        blocks.setdefault(engine, []).extend(one.strip() for one in text.split(";") if one.strip())


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until_answers(port, who):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{who} does not listen at port {port}")


def sums(rows):
    return {(host, cause): int(ns) for host, cause, ns in rows}


SUMS = "SELECT host_id, cause, sum(ns) FROM {} WHERE kind = 'wait' GROUP BY host_id, cause"


def embedded(url):
    made = subprocess.run([fleet_sql, url, SUMS.format("recordings"), "--format", "csv"],
                          check=True, capture_output=True, text=True).stdout
    return sums(list(csv.reader(io.StringIO(made)))[1:])


def duckdb_here():
    import duckdb
    base = duckdb.connect()
    for one in blocks["duckdb"]:
        base.execute(one.replace("STORE", store)).fetchall()
    return sums(base.execute(SUMS.format("waits")).fetchall())


def clickhouse(endpoint):
    from chdb import session
    base = session.Session()
    for one in blocks["clickhouse"]:
        local = one.replace("https://ops.s3.amazonaws.com/holdup", f"{endpoint}/{BUCKET}/{PREFIX}")
        base.query(local.replace(", 'Parquet'", ", 'test', 'test', 'Parquet'"))
    told = base.query(SUMS.format("waits"), "CSV").bytes().decode()
    return sums(csv.reader(io.StringIO(told)))


class Cluster:
    """A master and two workers of Spark, each a process of its own."""

    def __init__(self):
        import pyspark
        home = os.path.dirname(pyspark.__file__)
        self.port, self.all = free_port(), []
        where = {**os.environ, "SPARK_HOME": home, "SPARK_NO_DAEMONIZE": "1"}
        java = [os.path.join(home, "bin/spark-class")]
        self.begin(java + ["org.apache.spark.deploy.master.Master", "-h", "127.0.0.1", "-p", str(self.port),
                           "--webui-port", str(free_port())], where)
        until_answers(self.port, "Spark's master")
        for _ in range(2):
            self.begin(java + ["org.apache.spark.deploy.worker.Worker", "-h", "127.0.0.1", "-c", str(CORES_OF_A_WORKER),
                               "-m", MEMORY_OF_A_WORKER, "--webui-port", str(free_port()), "-d",
                               os.path.join(downloads, "work"), f"spark://127.0.0.1:{self.port}"], where)

    def begin(self, command, where):
        log = open(os.path.join(downloads, f"{len(self.all)}.log"), "wb")
        self.all.append(subprocess.Popen(command, env=where, stdout=log, stderr=log, start_new_session=True))

    def end(self):
        for one in self.all:
            os.killpg(one.pid, 15)
        for one in self.all:
            one.wait(60)


def spark(endpoint, packages):
    from pyspark.sql import SparkSession
    cluster = Cluster()
    try:
        base = (SparkSession.builder.master(f"spark://127.0.0.1:{cluster.port}").appName("holdup")
                .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").config("spark.driver.host", "127.0.0.1")
                .config("spark.jars.packages", packages).config("spark.jars.ivy", os.path.join(downloads, "ivy"))
                .config("spark.sql.warehouse.dir", os.path.join(downloads, "warehouse"))
                .config("spark.executor.memory", "800m").config("spark.cores.max", str(2 * CORES_OF_A_WORKER))
                .config("spark.hadoop.fs.s3a.endpoint", endpoint).config("spark.hadoop.fs.s3a.path.style.access", "true")
                .config("spark.hadoop.fs.s3a.access.key", "test").config("spark.hadoop.fs.s3a.secret.key", "test")
                .config("spark.hadoop.fs.s3a.connection.ssl.enabled", "false").getOrCreate())
        base.sparkContext.setLogLevel("ERROR")
        table, *questions = blocks["spark"]
        base.sql(table.replace("s3a://ops/holdup", f"s3a://{BUCKET}/{PREFIX}"))
        base.sql("MSCK REPAIR TABLE recordings")
        workers = base.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
        for one in questions:
            base.sql(one).collect()
        began = time.monotonic()
        told = sums(base.sql(SUMS.format("recordings")).collect())
        took = time.monotonic() - began
        base.stop()
        return told, f"{workers} workers, the question alone {took:.1f} s"
    finally:
        cluster.end()


def upload(endpoint):
    import boto3
    client = boto3.client("s3", endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="test",
                          region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    count = size = 0
    for folder, _, names in os.walk(store):
        for name in names:
            path = os.path.join(folder, name)
            client.upload_file(path, BUCKET, f"{PREFIX}/{os.path.relpath(path, store)}")
            count, size = count + 1, size + os.path.getsize(path)
    print(f"{count} objects, {size / 1e6:.1f} MB", flush=True)


def versions():
    from importlib.metadata import version
    return {name: version(name) for name in ("pyspark", "duckdb", "chdb", "moto")}


def main():
    of = versions()
    os.makedirs(downloads, exist_ok=True)
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_REGION="us-east-1", AWS_ENDPOINT_URL=endpoint)
    server = subprocess.Popen([sys.executable, "-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_answers(port, "the S3 server")
        upload(endpoint)
        packages = os.environ["SPARK_PACKAGES"]
        asked = [
            ("holdup fleet sql, a directory", lambda: embedded(f"file://{store}")),
            ("holdup fleet sql, S3", lambda: embedded(f"s3://{BUCKET}/{PREFIX}")),
            (f"DuckDB {of['duckdb']}, a directory", duckdb_here),
            (f"ClickHouse (chdb {of['chdb']}), S3", lambda: clickhouse(endpoint)),
            (f"Spark {of['pyspark']}, a standalone cluster, S3", lambda: spark(endpoint, packages)),
        ]
        first, failed = None, 0
        for name, ask in asked:
            began = time.monotonic()
            told = ask()
            told, more = told if isinstance(told, tuple) else (told, "")
            took = time.monotonic() - began
            first = first or told
            agrees = told == first and sum(told.values()) == expected
            failed += not agrees
            print(f"{name:<48} {'agrees' if agrees else 'differs'}: {len(told)} sums, {sum(told.values())} ns, {took:.1f} s {more}",
                  flush=True)
        print(f"{len(asked) - failed} passed, {failed} failed")
        sys.exit(failed > 0)
    finally:
        server.kill()


main()
