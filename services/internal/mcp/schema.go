package mcp

import stdjson "encoding/json"

// The schemas are written by hand: what Go derives from types lets a list be
// null and leaves out every bound.

const proposeSchema = `{
"type": "object", "additionalProperties": false, "required": ["command"],
"properties": {
  "command": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 4096, "description": "The program and its arguments, one element each. Nothing is split or expanded; for shell text use [\"bash\", \"-c\", \"...\"]."},
  "cwd": {"type": "string", "minLength": 1, "description": "Absolute working directory. Default: the folder that the agent works in."},
  "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Environment variables to set. No secrets."},
  "reason": {"type": "string", "description": "Why, for the people who decide."},
  "timeout_s": {"type": "integer", "minimum": 1, "maximum": 604800, "description": "Run time in seconds after which the command is ended."},
  "max_attempts": {"type": "integer", "minimum": 1, "maximum": 100},
  "retry_safe": {"type": "boolean", "description": "Running it twice does no harm."},
  "idempotency_key": {"type": "string", "minLength": 1, "maxLength": 200, "description": "The same key with the same content is the same job."},
  "labels": {"type": "object", "additionalProperties": {"type": "string"}},
  "pool": {"type": "string", "minLength": 1, "description": "Pool of workers."}
}}`

const jobSchema = `{
"type": "object", "additionalProperties": false, "required": ["job"],
"properties": {"job": {"type": "string", "minLength": 1, "maxLength": 64, "description": "The job's id."}}}`

const cancelSchema = `{
"type": "object", "additionalProperties": false, "required": ["job"],
"properties": {
  "job": {"type": "string", "minLength": 1, "maxLength": 64, "description": "The job's id."},
  "reason": {"type": "string", "maxLength": 4096, "description": "Why, for the log."}
}}`

const waitSchema = `{
"type": "object", "additionalProperties": false, "required": ["job"],
"properties": {
  "job": {"type": "string", "minLength": 1, "maxLength": 64, "description": "The job's id."},
  "wait_s": {"type": "integer", "minimum": 0, "maximum": 45, "description": "Longest wait in seconds. Default: 30."}
}}`

const listSchema = `{
"type": "object", "additionalProperties": false,
"properties": {
  "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "At most so many. Default: 20."},
  "before": {"type": "string", "minLength": 1, "maxLength": 64, "description": "A job's id: list those older than it."}
}}`

// rawSchema is a schema as the SDK takes it.
func rawSchema(text string) stdjson.RawMessage { return stdjson.RawMessage(text) }
