-- Module dependencies: collects references to the objects that an object needs.
local kube = require("kube")

local dependencies = {}

-- add appends a reference to an object of the core group, unless the name is missing or the list
-- already contains the reference.
function dependencies.add(list, namespace, kind, name)
  if type(name) ~= "string" or name == "" then
    return
  end
  for _, known in ipairs(list) do
    if known.kind == kind and known.name == name and known.namespace == namespace then
      return
    end
  end
  table.insert(list, { apiVersion = "v1", kind = kind, namespace = namespace, name = name })
end

-- addAccount appends a reference to a ServiceAccount, unless its name is default. Every namespace of
-- every cluster has that ServiceAccount.
function dependencies.addAccount(list, namespace, name)
  if name ~= "default" then
    dependencies.add(list, namespace, "ServiceAccount", name)
  end
end

-- addPod appends the references of a Pod template, which may be nil.
function dependencies.addPod(list, namespace, template)
  if type(template) ~= "table" then
    return
  end
  for _, found in ipairs(kube.getPodDependencies(template, namespace) or {}) do
    dependencies.add(list, found.namespace, found.kind, found.name)
  end
end

return dependencies
