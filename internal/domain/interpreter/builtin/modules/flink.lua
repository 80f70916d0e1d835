-- Module flink: the job manager and the task managers of a FlinkDeployment.
local status = require("status")

local flink = {}

-- text returns a number or text as text. A quantity may be both.
local function text(value)
  if type(value) == "number" then
    return tostring(value)
  end
  return value
end

-- binaryUnits are the units of Flink for memory, in lower case, as units of Kubernetes.
local binaryUnits = {
  b = "", bytes = "",
  k = "Ki", kb = "Ki", kibibytes = "Ki",
  m = "Mi", mb = "Mi", mebibytes = "Mi",
  g = "Gi", gb = "Gi", gibibytes = "Gi",
  t = "Ti", tb = "Ti", tebibytes = "Ti",
}

-- quantity returns a size of memory as a quantity of Kubernetes. The operator reads a size in units of
-- Flink first: 2048m is 2048 MiB, and not 2048 thousandths of a byte.
local function quantity(memory)
  if type(memory) == "string" then
    local number, name = string.match(memory, "^%s*(%d+)%s*(%a*)%s*$")
    local unit = number and binaryUnits[string.lower(name)]
    if unit then
      return number .. unit
    end
  end
  return text(memory)
end

-- taskManagers returns the number of task managers. Flink derives the number from the parallelism of
-- the job if the spec does not have it.
local function taskManagers(spec)
  local replicas = status.get(spec, "taskManager", "replicas")
  local parallelism = status.get(spec, "job", "parallelism")
  local field = "taskmanager.numberOfTaskSlots"
  local slots = status.get(spec, "flinkConfiguration", field)
  if replicas or not parallelism or not slots then
    return replicas or 1
  end
  local number = tonumber(slots) or 0
  if number < 1 then
    error('spec.flinkConfiguration["' .. field .. '"] is not a positive number: ' .. tostring(slots), 0)
  end
  return math.ceil(parallelism / number)
end

-- requirements returns the requirements of one Pod, or nil if there are none.
local function requirements(manager, podTemplate)
  local pod = status.table(status.get(podTemplate, "spec"))
  local resource = status.table(status.get(manager, "resource"))
  local result = { priorityClassName = pod.priorityClassName }
  if resource.cpu or resource.memory then
    result.resourceRequest = { cpu = text(resource.cpu), memory = quantity(resource.memory) }
  end
  if pod.nodeSelector or pod.tolerations then
    result.nodeClaim = { nodeSelector = pod.nodeSelector, tolerations = pod.tolerations }
  end
  return next(result) and result or nil
end

-- components returns the job manager and the task managers.
function flink.components(deployment)
  local spec = deployment.spec
  return {
    {
      name = "jobmanager",
      replicas = status.get(spec, "jobManager", "replicas") or 1,
      replicaRequirements = requirements(spec.jobManager, spec.podTemplate),
    },
    {
      name = "taskmanager",
      replicas = taskManagers(spec),
      replicaRequirements = requirements(spec.taskManager, spec.podTemplate),
    },
  }
end

return flink
