#!/bin/bash
. "$STAGE"
cd "$HERE" || exit 1
python3 -B metastored.py >"$RUN/metastored.log" 2>&1 &
there "$RUN/metastore.port" || exit 1
METASTORE_PORT=$(cat "$RUN/metastore.port") /usr/lib/jvm/java-17-openjdk-amd64/bin/java -XX:-UsePerfData -XX:ActiveProcessorCount=2 -Xmx96m -cp "$BUILT" CatalogService >"$RUN/catalog.log" 2>&1 &
asked=$!
sleep 5
ready "$asked"
