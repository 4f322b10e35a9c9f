"""Random list products against Postgres."""
import sys,time
from random import Random
import traceback
import os
from tests.integration.product.products import *
from tests.integration.product.test_products import compare_histories
from processor.tools.inspect.oracle import oracle
from processor.language.definitions.describe import describe_product
from processor.values import canonical_json
import pytest, uuid
def test_soak(postgres_url):
    a,b=map(int,os.environ["SOAK"].split(","))
    bad=0
    with oracle(postgres_url, f"soak_{uuid.uuid4().hex}", load({"entities.yaml": json.dumps(ENTITIES)}).entities) as tables:
        for n in range(a,b):
            rng=Random(n); d=draw_list_definitions(rng)
            p=d.products["p"]
            text={"entities.yaml": json.dumps(ENTITIES),"p.json":canonical_json.dumps(describe_product(p))}
            try:
                assert load(text).products["p"]==p, "describe"
                compare_histories(tables, rng, d, draw_history(rng, rng.choice([10,25,40])))
            except Exception as e:
                bad+=1
                print("SEED",n,type(e).__name__,str(e)[:1500].replace("\n"," | ")); 
                if bad>5: break
    print("DONE",bad)
