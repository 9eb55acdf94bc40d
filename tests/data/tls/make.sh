#!/bin/sh
# Makes the certificates anew; the keys of the authorities are thrown away.
set -eu
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
new="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
for ca in ca other-ca; do
    openssl req -x509 $new -keyout "$dir/$ca.key" -out $ca.pem -days 36500 -subj "/CN=runner test $ca" \
        -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign"
done
openssl req $new -keyout server.key -out "$dir/server.csr" -subj "/CN=localhost"
echo "subjectAltName=DNS:localhost" > "$dir/extensions"
openssl x509 -req -in "$dir/server.csr" -CA ca.pem -CAkey "$dir/ca.key" -out server.pem -days 36500 -extfile "$dir/extensions"
