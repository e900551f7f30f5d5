#!/bin/sh
# Installs Portolan on one Debian machine, with PostgreSQL of Debian and without containers. Run it as root, in a folder that has
# the package (`npm run build && npm pack ./dist/portolan` in a checkout), with Node 26 in /usr/bin/node:
#
#   sh install.sh portolan-0.1.0.tgz https://node.example/KEY
#
# It can be repeated: it changes only what is missing, and upgrades the package. A proxy with TLS comes in front of it.
set -eu

archive=$(realpath "$1")
node_url=$2
checkout=$(realpath "$(dirname "$0")/../..")

# Programs of Node from its makers need libatomic1.
apt-get install -y --no-install-recommends postgresql openssl libatomic1
# The packages start it, but not where it was installed and stopped before.
pg_lsclusters --no-header | while read -r version name _; do systemctl start "postgresql@$version-$name"; done

# The service connects by the socket of the server as the user of its unit. The other user may not read this folder.
cd /
# A name of the unit alone is unknown to PostgreSQL where libnss-systemd is not installed; the unit uses a user of this name.
id portolan > /dev/null 2>&1 || useradd --system --no-create-home --shell /usr/sbin/nologin portolan
su postgres -c "psql -tAc \"select 1 from pg_roles where rolname = 'portolan'\"" | grep -q 1 ||
  su postgres -c "createuser portolan && createdb --owner=portolan portolan"

# One folder for each version, so that the version before can be started again.
folder=/opt/portolan-$(basename "$archive" .tgz)
mkdir -p "$folder"
(cd "$folder" && npm install --no-fund --no-audit --omit=optional "$archive")
ln -sfn "$folder/node_modules/portolan" /opt/portolan

mkdir -p /etc/portolan
[ -e /etc/portolan/master.key ] || (umask 077 && openssl rand -hex 32 > /etc/portolan/master.key)
[ -e /etc/portolan/portolan.yaml ] || cat > /etc/portolan/portolan.yaml <<END
server:
  host: 127.0.0.1
  port: 4000
database:
  url: postgres:///portolan?host=/var/run/postgresql&user=portolan
security:
  master_key: file:/run/credentials/portolan.service/master_key
chains:
  c:
    networks:
      mainnet:
        upstreams:
          - { name: first, url: $node_url }
END

cp "$checkout/deploy/systemd/portolan.service" /etc/systemd/system/
cp "$checkout/deploy/systemd/portolan-dump.service" "$checkout/deploy/systemd/portolan-dump.timer" /etc/systemd/system/
systemctl daemon-reload
systemctl enable --now portolan.service portolan-dump.timer
systemctl restart portolan.service
