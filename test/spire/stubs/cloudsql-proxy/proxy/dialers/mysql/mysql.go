// Package mysql is empty: SPIRE imports it to register a MySQL dialer, and the tests use SQLite.
package mysql
