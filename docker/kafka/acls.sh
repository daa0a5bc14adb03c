#!/bin/sh
# Gives the users of a Kafka cluster what they need and no more:
#   acls.sh BOOTSTRAP [TOPIC_PREFIX]
#
#   engine  the only one that may write the journals; joins the engines' group.
#           Idempotent producing needs nothing beyond writing. Transactions are
#           not used, so no transactional id is allowed.
#   reader  nodes without the role engine: reads the journals, and describes the
#           engines' group to find a journal's owner.
#   admin   a super user, for `perpetua migrate` (creates the topics) and this.
#
# Nobody but admin may create, alter or delete a topic, or delete its records.
# Running it again changes nothing.
set -eu
bootstrap=$1
prefix=${2:-}
kafka=${KAFKA_HOME:-/opt/kafka}
properties=$(mktemp)
trap 'rm -f "$properties"' EXIT
cat > "$properties" <<PROPERTIES
security.protocol=${KAFKA_SECURITY_PROTOCOL:-SASL_PLAINTEXT}
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="$KAFKA_ADMIN_PASSWORD";
PROPERTIES

allow() {
  "$kafka/bin/kafka-acls.sh" --bootstrap-server "$bootstrap" --command-config "$properties" --add "$@"
}

for topic in trading onboarding identity; do
  allow --allow-principal User:engine --operation Read --operation Write --operation Describe --operation DescribeConfigs --topic "$prefix$topic"
  allow --allow-principal User:reader --operation Read --operation Describe --operation DescribeConfigs --topic "$prefix$topic"
done
allow --allow-principal User:engine --operation Read --operation Describe --group "${prefix}perpetua-engine"
allow --allow-principal User:reader --operation Describe --group "${prefix}perpetua-engine"
