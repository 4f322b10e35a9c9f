-- The source database that Debezium reads.
CREATE DATABASE source;
