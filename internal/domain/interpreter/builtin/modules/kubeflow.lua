-- Module kubeflow: training jobs. Their spec has one Pod template for each role, and their status has
-- the numbers of Pods of each role.
local components = require("components")
local dependencies = require("dependencies")
local status = require("status")

local kubeflow = {}

-- components returns a component for each of the roles that the specs have. Its name is the role in
-- lower case.
function kubeflow.components(specs, roles)
  local list = {}
  for _, role in ipairs(roles) do
    local spec = status.get(specs, role)
    if spec then
      components.add(list, string.lower(role), spec.replicas or 1, spec.template)
    end
  end
  return list
end

-- dependencies returns references to the objects that the Pods of the roles need.
function kubeflow.dependencies(specs, roles, namespace)
  local list = {}
  for _, role in ipairs(roles) do
    dependencies.addPod(list, namespace, status.get(specs, role, "template"))
  end
  return list
end

-- setReplicas sets replicaStatuses to the sums of the items for each of the roles.
function kubeflow.setReplicas(total, items, roles)
  total.replicaStatuses = {}
  for _, role in ipairs(roles) do
    total.replicaStatuses[role] = {}
    local numbers = status.at(items, "replicaStatuses", role)
    status.sum(total.replicaStatuses[role], numbers, { "active", "succeeded", "failed" })
  end
end

-- outcome returns the type of the condition with which the job is final, and a message. The job has
-- failed if it failed in one cluster, and succeeded if it succeeded in all clusters. Otherwise the
-- type is nil.
function kubeflow.outcome(template, items)
  local failed, isSucceeded = {}, true
  for _, item in ipairs(items) do
    if status.isTrue(item, "Failed") then
      table.insert(failed, item.clusterName)
    end
    isSucceeded = isSucceeded and status.isTrue(item, "Succeeded")
  end
  local job = template.kind .. " " .. template.metadata.name
  if #failed > 0 then
    return "Failed", job .. " failed in clusters: " .. table.concat(failed, ", ")
  end
  if isSucceeded then
    return "Succeeded", job .. " succeeded in all clusters"
  end
end

-- pickCondition returns a copy of a condition with the given type and status of one of the items. The
-- function isBetter(a, b) compares two times of transitions.
local function pickCondition(items, conditionType, value, isBetter)
  local best
  for _, item in ipairs(status.members(items)) do
    local condition = status.condition(item, conditionType)
    if condition and condition.status == value then
      local time = condition.lastTransitionTime
      if not best or isBetter(time or "", best.lastTransitionTime or "") then
        best = condition
      end
    end
  end
  return best and status.copy(best)
end

-- earliestCondition returns a copy of the condition with the earliest transition, or nil.
function kubeflow.earliestCondition(items, conditionType, value)
  return pickCondition(items, conditionType, value, function(a, b)
    return a < b
  end)
end

-- latestCondition returns a copy of the condition with the latest transition, or nil.
function kubeflow.latestCondition(items, conditionType, value)
  return pickCondition(items, conditionType, value, function(a, b)
    return a > b
  end)
end

-- aggregate returns the template with the status of all items. The function conditionsOf returns its
-- conditions: conditionsOf(items, outcome, message).
function kubeflow.aggregate(template, items, roles, conditionsOf)
  if not status.members(items)[1] then
    return template
  end
  local outcome, message = kubeflow.outcome(template, items)
  local total = { conditions = conditionsOf(items, outcome, message) }
  status.earliest(total, items, { "startTime" })
  status.latest(total, items, { "lastReconcileTime" })
  if outcome == "Succeeded" then
    status.latest(total, items, { "completionTime" })
  end
  kubeflow.setReplicas(total, items, roles)
  template.status = status.withoutZeros(total)
  return template
end

return kubeflow
