#!/bin/bash
# directory with a proxied partner tree
. "$STAGE"
P=$(port); echo $P >port; mkdir -p db; chown -R openldap:openldap db
cat >partner_dc.py <<'EOF'
# the partner's domain controller, half up after its backup: sockets open, no answers
import selectors, socket
s = socket.create_server(("127.0.0.1", 22389)); sel = selectors.DefaultSelector(); sel.register(s, 1); peers = []
while True:
    for k, _ in sel.select():
        if k.fileobj is s: c, _ = s.accept(); peers.append(c); sel.register(c, 1)
        elif not k.fileobj.recv(4096): sel.unregister(k.fileobj); k.fileobj.close()
EOF
cat >slapd.conf <<EOF
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload back_ldap
threads 4
pidfile $RUN/db/slapd.pid
database mdb
suffix "dc=works,dc=example"
rootdn "cn=admin,dc=works,dc=example"
rootpw works
directory $RUN/db
maxsize 10485760
database ldap
suffix "o=partner"
uri "ldap://127.0.0.1:22389"
EOF
cat >seed.ldif <<'EOF'
dn: dc=works,dc=example
objectClass: dcObject
objectClass: organization
o: works
dc: works

dn: cn=ann,dc=works,dc=example
objectClass: person
cn: ann
sn: ann
EOF
slapadd -f slapd.conf -b dc=works,dc=example -l seed.ldif >seed.log 2>&1; chown -R openldap:openldap db; chmod 644 slapd.conf
/usr/bin/python3 partner_dc.py & up 22389
slapd -h "ldap://127.0.0.1:$P" -f "$RUN/slapd.conf" -u openldap -g openldap -d 256 >slapd.log 2>&1 & SL=$!
up "$P" || exit 1
find_() { while :; do timeout 60 ldapsearch -x -LLL -H "ldap://127.0.0.1:$P" -b "$1" "$2" >>"$3" 2>&1; sleep 0.5; done; }
find_ dc=works,dc=example '(cn=ann)' local.log & sleep 1
for i in 1 2 3 4 5; do find_ o=partner "(uid=guest$i)" partner.log & done
sleep 4; ready $SL
