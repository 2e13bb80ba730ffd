//! Libraries that programs of Java are made with, by how the names of their classes begin.
//!
//! In: a frame. Out: whether it is of one of them, and of which.

/// Loggers, and what other languages for the virtual machine bring with them.
const WITHOUT_THREADS: &[&str] = &[
    "org.slf4j.",
    "ch.qos.logback.",
    "org.apache.log4j.",
    "org.apache.logging.",
    "org.apache.commons.",
    "com.google.common.",
    "com.google.protobuf.",
    "com.fasterxml.jackson.",
    "kotlin.",
    "kotlinx.",
    "scala.",
    "groovy.",
    "clojure.",
];

/// Pools, drivers, clients, servers, and what is around handlers. A client of the runtime's own is among them.
const WITH_THREADS: &[&str] = &[
    "jdk.internal.net.http.",
    "org.apache.http.",
    "org.apache.hc.",
    "org.apache.tomcat.",
    "org.apache.catalina.",
    "org.apache.coyote.",
    "org.apache.kafka.",
    "org.apache.zookeeper.",
    "org.apache.curator.",
    "org.apache.activemq.",
    "org.apache.pulsar.",
    "org.apache.rocketmq.",
    "org.apache.thrift.",
    "org.apache.dubbo.",
    "org.apache.cxf.",
    "org.apache.camel.",
    "org.apache.ibatis.",
    "org.eclipse.jetty.",
    "org.eclipse.paho.",
    "org.glassfish.",
    "org.jboss.",
    "org.hibernate.",
    "org.springframework.",
    "org.postgresql.",
    "org.mariadb.",
    "org.asynchttpclient.",
    "org.elasticsearch.",
    "org.opensearch.",
    "org.redisson.",
    "org.quartz.",
    "org.jooq.",
    "org.infinispan.",
    "com.mysql.",
    "com.microsoft.sqlserver.",
    "oracle.",
    "com.zaxxer.hikari.",
    "com.mchange.",
    "com.alibaba.druid.",
    "com.rabbitmq.",
    "com.mongodb.",
    "com.datastax.",
    "com.couchbase.",
    "com.hazelcast.",
    "com.amazonaws.",
    "com.linecorp.armeria.",
    "com.google.api.gax.",
    "co.elastic.",
    "software.amazon.awssdk.",
    "redis.clients.",
    "net.spy.memcached.",
    "io.agroal.",
    "io.etcd.",
    "io.grpc.",
    "io.helidon.",
    "io.javalin.",
    "io.lettuce.",
    "io.micronaut.",
    "io.nats.",
    "io.netty.",
    "io.quarkus.",
    "io.reactivex.",
    "io.smallrye.",
    "io.undertow.",
    "io.vertx.",
    "feign.",
    "okhttp3.",
    "okio.",
    "reactor.",
    "retrofit2.",
];

/// Whether a frame is of one of them.
pub(super) fn of(frame: &str) -> bool {
    WITHOUT_THREADS.iter().any(|start| frame.starts_with(start)) || with_threads(frame).is_some()
}

/// The library with threads of its own that a frame is of.
pub(super) fn with_threads(frame: &str) -> Option<&'static str> {
    WITH_THREADS
        .iter()
        .find(|start| frame.starts_with(**start))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::{of, with_threads};

    #[test]
    fn a_library_is_told_by_how_the_names_of_its_classes_begin() {
        let of_kafka = "org.apache.kafka.clients.NetworkClient.poll";
        assert_eq!(with_threads(of_kafka), Some("org.apache.kafka."));
        let of_runtime = "jdk.internal.net.http.HttpClientImpl$SelectorManager.run";
        assert_eq!(with_threads(of_runtime), Some("jdk.internal.net.http."));
        assert!(of("kotlin.collections.CollectionsKt.map"));
        assert_eq!(with_threads("kotlin.collections.CollectionsKt.map"), None);
        assert!(!of("org.example.checkout.OrderEvents.orderPlaced"));
    }
}
