"""The definitions of a scene: users with the stars that they gave, published as profiles."""

import json


def profile_definitions(name: str, note: str = "string") -> dict[str, str]:
    entities = {
        "user": {"topic": f"{name}.user", "key": ["id"], "columns": {"id": "int", "name": "string"}},
        "star": {
            "topic": f"{name}.star",
            "key": ["who", "repo"],
            "columns": {"who": "string", "repo": "string", "note": note},
        },
    }
    stars = {"many": "star", "on": {"who": "name"}, "fields": ["repo", "note"]}
    product = {
        "product": "profile",
        "topic": f"{name}.profile",
        "root": "user",
        "fields": ["id", "name"],
        "embed": {"stars": stars},
    }
    return {"entities.yaml": json.dumps(entities), "products/profile.yaml": json.dumps(product)}
