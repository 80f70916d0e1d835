-- Module status: functions for the status of one object, and for the aggregation of the statuses of
-- several clusters. Values of a wrong type count as missing.
--
-- An item is an entry of the second argument of AggregateStatus. The functions that aggregate accept
-- nil for items, and skip items without a status. Most of them set fields of a table: its parameter
-- is called total.
local status = {}

-- table returns the value if it is a table, and an empty table otherwise.
function status.table(value)
  return type(value) == "table" and value or {}
end

-- isObject reports whether the value is a table, and not a list with entries.
function status.isObject(value)
  return type(value) == "table" and value[1] == nil
end

-- number returns the value if it is a number, and 0 otherwise.
function status.number(value)
  return type(value) == "number" and value or 0
end

-- get returns the value at a path of keys, or nil: get(object, "spec", "template").
function status.get(value, ...)
  for i = 1, select("#", ...) do
    if type(value) ~= "table" then
      return nil
    end
    value = value[(select(i, ...))]
  end
  return value
end

-- copy returns a table with the same fields.
function status.copy(original)
  local result = {}
  for key, value in pairs(original) do
    result[key] = value
  end
  return result
end

-- isEmpty reports whether the value is nil, "", or a table without fields.
function status.isEmpty(value)
  return value == nil or value == "" or (type(value) == "table" and next(value) == nil)
end

-- Health --------------------------------------------------------------------------------------

-- isObserved reports whether the controller of the object has observed the latest generation.
function status.isObserved(object)
  local observed = status.get(object, "status", "observedGeneration")
  return type(observed) == "number" and observed == status.get(object, "metadata", "generation")
end

-- isRolledOut reports whether the latest generation is observed, all replicas that the spec demands
-- are updated, and all updated replicas are available.
function status.isRolledOut(object)
  if not status.isObserved(object) or type(object.spec) ~= "table" then
    return false
  end
  local updated = status.number(object.status.updatedReplicas)
  return updated >= status.number(object.spec.replicas)
    and status.number(object.status.availableReplicas) >= updated
end

-- condition returns the condition of the given type in the status of the object, or nil.
function status.condition(object, conditionType)
  for _, condition in ipairs(status.table(status.get(object, "status", "conditions"))) do
    if status.get(condition, "type") == conditionType then
      return condition
    end
  end
end

-- isTrue reports whether the object has the condition with status True. If reasons are given, the
-- condition must have one of them.
function status.isTrue(object, conditionType, ...)
  local condition = status.condition(object, conditionType)
  if not condition or condition.status ~= "True" then
    return false
  end
  for i = 1, select("#", ...) do
    if condition.reason == (select(i, ...)) then
      return true
    end
  end
  return select("#", ...) == 0
end

-- isHealthyJob reports whether a job has conditions, and Failed is not True.
function status.isHealthyJob(object)
  local conditions = status.table(status.get(object, "status", "conditions"))
  return #conditions > 0 and not status.isTrue(object, "Failed")
end

-- Reflection ----------------------------------------------------------------------------------

-- reflect returns a table with the given fields of the status of a member object. The table is
-- empty if the object has no status.
function status.reflect(object, fields)
  local reflected, from = {}, status.table(object.status)
  for _, field in ipairs(fields) do
    reflected[field] = from[field]
  end
  return reflected
end

-- reflectObserved works as reflect, and adds the generations that setObservedGeneration needs.
function status.reflectObserved(object, fields)
  if type(object.status) ~= "table" then
    return {}
  end
  local reflected = status.reflect(object, fields)
  reflected.observedGeneration = object.status.observedGeneration
  reflected.generation = object.metadata.generation
  local annotation = status.get(object, "metadata", "annotations", "resourcetemplate.karmada.io/generation")
  if type(annotation) == "string" and string.match(annotation, "^%d+$") then
    reflected.resourceTemplateGeneration = tonumber(annotation)
  end
  return reflected
end

-- Retention -----------------------------------------------------------------------------------

-- retain returns the desired object with the given fields of the spec of the member object. Fields
-- that the member object does not have are unchanged.
function status.retain(desired, observed, fields)
  local from = status.table(observed.spec)
  for _, field in ipairs(fields) do
    if from[field] ~= nil then
      desired.spec[field] = from[field]
    end
  end
  return desired
end

-- Aggregation ---------------------------------------------------------------------------------

-- members returns the items that have a status.
function status.members(items)
  local members = {}
  for _, item in ipairs(items or {}) do
    if status.isObject(item.status) then
      table.insert(members, item)
    end
  end
  return members
end

-- single returns the status of the only item. It returns nil if there is not exactly one item, or if
-- the item has no status.
function status.single(items)
  if items and #items == 1 and status.isObject(items[1].status) then
    return items[1].status
  end
end

-- total returns the status of the template. The status becomes a new table if there is none, or if it
-- is a list.
function status.total(template)
  if not status.isObject(template.status) then
    template.status = {}
  end
  return template.status
end

-- reduce sets each of the fields to the values of all items, combined by choose(result, value). The
-- first result is initial. Values of other types than valueType are skipped.
local function reduce(total, items, fields, valueType, initial, choose)
  local members = status.members(items)
  for _, field in ipairs(fields) do
    local result = initial
    for _, item in ipairs(members) do
      local value = item.status[field]
      if type(value) == valueType and value ~= "" then
        result = choose(result, value)
      end
    end
    total[field] = result
  end
end

-- sum sets each of the fields to the sum of all items.
function status.sum(total, items, fields)
  reduce(total, items, fields, "number", 0, function(result, value)
    return result + value
  end)
end

-- max sets each of the fields to the largest number of all items, or to nil.
function status.max(total, items, fields)
  reduce(total, items, fields, "number", nil, function(result, value)
    return (result == nil or value > result) and value or result
  end)
end

-- latest sets each of the fields, which are times in RFC 3339 and UTC, to the latest time, or to nil.
function status.latest(total, items, fields)
  reduce(total, items, fields, "string", nil, function(result, value)
    return (result == nil or value > result) and value or result
  end)
end

-- earliest sets each of the fields, which are times in RFC 3339 and UTC, to the earliest time, or to
-- nil.
function status.earliest(total, items, fields)
  reduce(total, items, fields, "string", nil, function(result, value)
    return (result == nil or value < result) and value or result
  end)
end

-- last sets each of the fields to the value of the last item that has one, or to default. Empty
-- strings and tables are no values.
function status.last(total, items, fields, default)
  local members = status.members(items)
  for _, field in ipairs(fields) do
    total[field] = default
    for _, item in ipairs(members) do
      if not status.isEmpty(item.status[field]) then
        total[field] = item.status[field]
      end
    end
  end
end

-- first sets each of the fields to the value of the first item that has one, or to nil. Empty strings
-- and tables are no values.
function status.first(total, items, fields)
  local members = status.members(items)
  for _, field in ipairs(fields) do
    total[field] = nil
    for _, item in ipairs(members) do
      if total[field] == nil and not status.isEmpty(item.status[field]) then
        total[field] = item.status[field]
      end
    end
  end
end

-- concat returns the entries of a list in the status of all items, or nil if there are none.
function status.concat(items, field)
  local result = {}
  for _, item in ipairs(status.members(items)) do
    for _, entry in ipairs(status.table(item.status[field])) do
      table.insert(result, entry)
    end
  end
  return result[1] and result or nil
end

-- setObservedGeneration sets observedGeneration in the status of the template to its generation, if
-- all items have it: the member object was made from this generation of the template, and its
-- controller has observed it. Otherwise the field keeps its value, or becomes 0.
function status.setObservedGeneration(template, items)
  local total, generation = status.total(template), template.metadata.generation
  total.observedGeneration = status.number(total.observedGeneration)
  for _, item in ipairs(items or {}) do
    local member = status.table(item.status)
    if member.resourceTemplateGeneration ~= generation or member.generation ~= member.observedGeneration then
      return
    end
  end
  total.observedGeneration = generation
end

-- maxMessage is the length in bytes after which a message is cut. The API server refuses messages of
-- more than 32768 characters.
local maxMessage = 32000

-- joinMessages returns the messages, separated by commas. It omits messages that are too much for one
-- condition, and appends their number.
local function joinMessages(messages)
  local length = -2
  for i, message in ipairs(messages) do
    length = length + 2 + #message
    if length > maxMessage then
      -- Only the first message is cut, and never inside of a character of several bytes.
      local kept = i > 1 and table.concat(messages, ", ", 1, i - 1)
        or string.gsub(string.sub(message, 1, maxMessage), "[\192-\255][\128-\191]*$", "")
      local omitted = #messages - math.max(i - 1, 1)
      return kept .. " ..." .. (omitted > 0 and " (" .. omitted .. " more)" or "")
    end
  end
  return table.concat(messages, ", ")
end

-- mergeConditions returns the conditions of all items, or nil if there are none. Conditions with the
-- same type, status and reason become one condition, in the order of their first appearance. Its
-- message is cluster=message for each cluster. Its other fields are those of the first cluster.
function status.mergeConditions(items)
  local merged, messages = {}, {}
  for _, item in ipairs(status.members(items)) do
    for _, condition in ipairs(status.table(item.status.conditions)) do
      local key = table.concat({ condition.type or "", condition.status or "", condition.reason or "" }, "/")
      if not messages[key] then
        messages[key] = {}
        table.insert(merged, status.copy(condition))
        merged[#merged].message = messages[key]
      end
      table.insert(messages[key], item.clusterName .. "=" .. (condition.message or ""))
    end
  end
  for _, condition in ipairs(merged) do
    condition.message = joinMessages(condition.message)
  end
  return merged[1] and merged or nil
end

-- lastConditions returns one condition of each type, or nil if there are none. It is the condition of
-- the last item that has the type. The order is the order of the first appearance of the types.
function status.lastConditions(items)
  local result, indexes = {}, {}
  for _, item in ipairs(status.members(items)) do
    for _, condition in ipairs(status.table(item.status.conditions)) do
      local key = condition.type or ""
      indexes[key] = indexes[key] or #result + 1
      result[indexes[key]] = condition
    end
  end
  return result[1] and result or nil
end

-- withoutZeros returns a copy of the value without zeros at any depth: 0, "", "0s" and empty tables.
-- The copy of a zero is nil.
function status.withoutZeros(value)
  if value == 0 or value == "" or value == "0s" then
    return nil
  end
  if type(value) ~= "table" then
    return value
  end
  local result = {}
  if #value > 0 then
    for _, entry in ipairs(value) do
      local kept = status.withoutZeros(entry)
      if kept ~= nil then
        table.insert(result, kept)
      end
    end
  else
    for key, field in pairs(value) do
      result[key] = status.withoutZeros(field)
    end
  end
  return next(result) ~= nil and result or nil
end

-- at returns items with the value at a path in the status of each item, instead of the status. So the
-- functions that aggregate apply to nested fields.
function status.at(items, ...)
  local result = {}
  for i, item in ipairs(items or {}) do
    result[i] = { clusterName = item.clusterName, status = status.get(item.status, ...) }
  end
  return result
end

-- union returns the entries of a map in the status of all items. If several items have a key, the
-- value of the last item is used.
function status.union(items, field)
  local result = {}
  for _, item in ipairs(status.members(items)) do
    for key, value in pairs(status.table(item.status[field])) do
      result[key] = value
    end
  end
  return result
end

-- worst returns the status of the item whose value of the field has the highest rank in the table
-- ranks. Values that are not in the table have rank 0. Of equal ranks, the first item that has the
-- field is used. It returns an empty table if no item has the field.
function status.worst(items, field, ranks)
  local result, highest = {}, -1
  for _, item in ipairs(status.members(items)) do
    local value = item.status[field]
    local rank = value ~= nil and (ranks[value] or 0) or -1
    if rank > highest then
      result, highest = item.status, rank
    end
  end
  return result
end

-- latestConditions returns one condition for each value of the field key, or nil if there are none. It
-- is the condition with the latest transition. The order is that of the first appearance of the values.
function status.latestConditions(items, key)
  local function time(condition)
    local value = status.get(condition, "lastTransitionTime")
    return type(value) == "string" and value or ""
  end
  local result, indexes = {}, {}
  for _, item in ipairs(status.members(items)) do
    for _, condition in ipairs(status.table(item.status.conditions)) do
      local value = status.get(condition, key) or ""
      local index = indexes[value] or #result + 1
      if index > #result or time(condition) > time(result[index]) then
        result[index], indexes[value] = condition, index
      end
    end
  end
  return result[1] and result or nil
end

-- stamp sets the times of a new condition of the template: lastTransitionTime, and the field
-- updateField. The times of the stored condition of the same type are kept: lastTransitionTime if the
-- status is equal, and updateField if nothing differs. The default is the current time.
function status.stamp(template, condition, updateField)
  local now = os.date("!%Y-%m-%dT%H:%M:%SZ")
  local stored = status.table(status.condition(template, condition.type))
  local same = stored.status == condition.status
  condition.lastTransitionTime = same and stored.lastTransitionTime or now
  same = same and stored.reason == condition.reason and stored.message == condition.message
  condition[updateField] = same and stored[updateField] or now
  return condition
end

-- combine returns the template with the status of all items. The status of a single item is used as
-- it is. The function totalOf(items) returns the status of several items. If no item has a status, the
-- template is unchanged.
function status.combine(template, items, totalOf)
  if status.members(items)[1] then
    template.status = status.single(items) or totalOf(items)
  end
  return template
end

return status
