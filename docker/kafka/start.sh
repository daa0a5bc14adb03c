#!/bin/sh
# Starts one node of the cluster:
#   start.sh NODE_ID
# KAFKA_ROLES says what the node is: "broker,controller" for both in one, which
# is the default and enough to try things out, or "broker" or "controller". In
# production the controllers are nodes of their own (compose.controllers.yaml):
# then no broker's death costs the cluster its controller as well.
# Every listener authenticates (SASL PLAIN, three users: admin, engine, reader),
# and nobody may do what no ACL allows. Inside one compose network the listeners
# are not encrypted; across machines give them TLS.
set -eu
node=$1
roles=${KAFKA_ROLES:-broker,controller}
kafka=${KAFKA_HOME:-/opt/kafka}
data=${KAFKA_DATA:-/var/lib/kafka/data}
config=${KAFKA_CONFIG:-/tmp/server.properties}
host=${KAFKA_HOST:-kafka-$node}
voters=${KAFKA_VOTERS:-1@kafka-1:9093,2@kafka-2:9093,3@kafka-3:9093}
clients=${KAFKA_CLIENTS_PORT:-9092}
controller=${KAFKA_CONTROLLER_PORT:-9093}

case $roles in
broker,controller)
  listeners="listeners=CLIENTS://$host:$clients,CONTROLLER://$host:$controller
advertised.listeners=CLIENTS://$host:$clients" ;;
broker)
  listeners="listeners=CLIENTS://$host:$clients
advertised.listeners=CLIENTS://$host:$clients" ;;
controller)
  listeners="listeners=CONTROLLER://$host:$controller" ;;
*)
  echo "start.sh: KAFKA_ROLES is \"$roles\": it takes broker,controller or broker or controller" >&2
  exit 2 ;;
esac

login='org.apache.kafka.common.security.plain.PlainLoginModule required'
users="user_admin=\"$KAFKA_ADMIN_PASSWORD\" user_engine=\"$KAFKA_ENGINE_PASSWORD\" user_reader=\"$KAFKA_READER_PASSWORD\""
jaas="$login username=\"admin\" password=\"$KAFKA_ADMIN_PASSWORD\" $users;"

umask 077
cat > "$config" <<PROPERTIES
process.roles=$roles
node.id=$node
controller.quorum.voters=$voters
$listeners
listener.security.protocol.map=CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=CLIENTS
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.clients.plain.sasl.jaas.config=$jaas
listener.name.controller.plain.sasl.jaas.config=$jaas
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin
allow.everyone.if.no.acl.found=false
default.replication.factor=3
min.insync.replicas=2
unclean.leader.election.enable=false
# A follower whose connection hangs, since packets were dropped, makes another
# one after this. The default is 30 s: all that time it is out of sync.
replica.socket.timeout.ms=3000
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.dirs=$data
# How soon a node that has died or fallen silent is replaced. The defaults take
# about 10 s. The controller misses a broker after the session, which is at
# least six heartbeats: with a shorter one, a busy machine loses brokers that
# live. The controllers miss their leader after the fetch timeout and elect
# another one within the election timeout. A replica that is behind for longer
# than the lag is not waited for. The times of the venue's own Kafka clients
# are chosen to go with these.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=300
controller.quorum.fetch.timeout.ms=1000
controller.quorum.election.timeout.ms=300
controller.quorum.election.backoff.max.ms=300
replica.lag.time.max.ms=5000
PROPERTIES

# The cluster's id is the same on each node; a folder is formatted once.
"$kafka/bin/kafka-storage.sh" format --ignore-formatted --cluster-id "${KAFKA_CLUSTER_ID:-cGVycGV0dWEtY29tcG9zZQ}" --config "$config"
exec "$kafka/bin/kafka-server-start.sh" "$config"
