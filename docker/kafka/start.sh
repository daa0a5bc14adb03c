#!/bin/sh
# Starts one node of the cluster, broker and controller in one:
#   start.sh NODE_ID
# Every listener authenticates (SASL PLAIN, three users: admin, engine, reader),
# and nobody may do what no ACL allows. Inside one compose network the listeners
# are not encrypted; across machines give them TLS.
set -eu
node=$1
kafka=${KAFKA_HOME:-/opt/kafka}
data=${KAFKA_DATA:-/var/lib/kafka/data}
config=${KAFKA_CONFIG:-/tmp/server.properties}
host=${KAFKA_HOST:-kafka-$node}
voters=${KAFKA_VOTERS:-1@kafka-1:9093,2@kafka-2:9093,3@kafka-3:9093}
clients=${KAFKA_CLIENTS_PORT:-9092}
controller=${KAFKA_CONTROLLER_PORT:-9093}

login='org.apache.kafka.common.security.plain.PlainLoginModule required'
users="user_admin=\"$KAFKA_ADMIN_PASSWORD\" user_engine=\"$KAFKA_ENGINE_PASSWORD\" user_reader=\"$KAFKA_READER_PASSWORD\""
jaas="$login username=\"admin\" password=\"$KAFKA_ADMIN_PASSWORD\" $users;"

umask 077
cat > "$config" <<PROPERTIES
process.roles=broker,controller
node.id=$node
controller.quorum.voters=$voters
listeners=CLIENTS://$host:$clients,CONTROLLER://$host:$controller
advertised.listeners=CLIENTS://$host:$clients
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
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
broker.session.timeout.ms=6000
log.dirs=$data
PROPERTIES

# The cluster's id is the same on each node; a folder is formatted once.
"$kafka/bin/kafka-storage.sh" format --ignore-formatted --cluster-id "${KAFKA_CLUSTER_ID:-cGVycGV0dWEtY29tcG9zZQ}" --config "$config"
exec "$kafka/bin/kafka-server-start.sh" "$config"
