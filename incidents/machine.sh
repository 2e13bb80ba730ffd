# The ordinary inhabitants of a machine. In: stage.sh has been read. Out: `inhabitants NAME…` starts them, each with somebody who uses it.
# shellcheck shell=bash
mkdir -p log www home
loop() { local gap=$1; shift; while :; do "$@" >>"log/$LOGN" 2>&1; sleep "$gap"; done; }
inhabitants() {
  for s in "$@"; do
    case $s in
    redis) RP=$(port); redis-server --port "$RP" --bind 127.0.0.1 --save '' --dir "$RUN" >log/redis 2>&1 & up "$RP"; (LOGN=redis-cli; loop 1.3 redis-cli -p "$RP" incr visits) & ;;
    nginx) NP=$(port); echo hello >www/index.html
      printf 'user www-data;\ndaemon off;\nworker_processes 1;\npid %s/nginx.pid;\nerror_log %s/log/ng.err;\nevents {worker_connections 64;}\nhttp { access_log off; client_body_temp_path %s/home/b; proxy_temp_path %s/home/p; fastcgi_temp_path %s/home/f; uwsgi_temp_path %s/home/u; scgi_temp_path %s/home/s; server { listen 127.0.0.1:%s; root %s/www; } }\n' "$RUN" "$RUN" "$RUN" "$RUN" "$RUN" "$RUN" "$RUN" "$NP" "$RUN" >ng.conf
      nginx -c "$RUN/ng.conf" & up "$NP"; (LOGN=ng-client; loop 1.1 curl -s -o /dev/null "http://127.0.0.1:$NP/") & ;;
    pyhttp) HP=$(port); /usr/bin/python3 -m http.server -b 127.0.0.1 -d www "$HP" >log/pyhttp 2>&1 & up "$HP"; (LOGN=py-client; loop 1.7 curl -s -o /dev/null "http://127.0.0.1:$HP/") & ;;
    broker) MP=$(port); printf 'listener %s 127.0.0.1\nallow_anonymous true\npersistence false\n' "$MP" >mq.conf; mosquitto -c mq.conf >log/mq 2>&1 & up "$MP"; mosquitto_sub -h 127.0.0.1 -p "$MP" -t 'house/#' >log/house & (LOGN=mq-pub; loop 2 mosquitto_pub -h 127.0.0.1 -p "$MP" -t house/hall -m 21.5) & ;;
    beans) BP=$(port); beanstalkd -l 127.0.0.1 -p "$BP" & ;;
    cache) CP=$(port); memcached -u memcache -l 127.0.0.1 -p "$CP" -U 0 -m 16 & ;;
    logger) (while :; do echo "$(date +%T) heartbeat" >>log/heartbeat; sleep 1; done) & ;;
    rotate) (while :; do [ "$(stat -c %s log/heartbeat 2>/dev/null || echo 0)" -gt 200000 ] && : >log/heartbeat; sleep 3; done) & ;;
    tailer) (touch log/heartbeat; tail -F log/heartbeat 2>/dev/null | grep --line-buffered -c alarm >log/alarms) & ;;
    stats) (while :; do cut -d' ' -f1-3 /proc/loadavg >>log/load; sleep 2; done) & ;;
    dns) DP=$(port); printf 'server:\n interface: 127.0.0.1\n port: %s\n do-daemonize: no\n username: ""\n chroot: ""\n pidfile: ""\n use-syslog: no\n local-zone: "lan." static\n local-data: "nas.lan. A 10.0.0.2"\nremote-control:\n control-enable: no\n' "$DP" >ub.conf; unbound -d -c "$RUN/ub.conf" >log/ub 2>&1 & (sleep 1; LOGN=dig; loop 2.1 dig +short +tries=1 +time=2 @127.0.0.1 -p "$DP" nas.lan) & ;;
    esac
  done
}
