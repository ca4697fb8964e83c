#!/bin/sh
# The first layer, after Debian's packages: adds the user and removes unused files. base.sh <root folder>
set -eu
cd "$1"

# Spark and Java need a name for their user. Its home is the only writable folder in a pod with a read-only root.
echo 's3sink:x:185:' >>etc/group
echo 's3sink:x:185:185::/tmp:/usr/sbin/nologin' >>etc/passwd

# Copyright notices stay.
find usr/share/doc -type f ! -name copyright -delete
find usr/share/doc -type l -delete
rm -rf usr/share/man usr/share/info usr/share/locale usr/share/lintian
rm -rf var/cache/apt var/cache/debconf var/lib/apt/lists var/log/*
# The same name of Java's folder on every architecture.
ln -s "$(cd usr/lib/jvm && echo java-17-openjdk-*)" usr/lib/jvm/java-17
